<?php
/**
 * The door: asks the queue about a request and decides what happens.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Knows nothing of WordPress: asking and the clock are handed in.
 */
final class Door {

	const BUDGET_SECONDS = 2.0;

	/** A question with less time left would be cut off before a healthy server could answer. */
	const QUESTION_SECONDS_MIN = 1.0;

	/**
	 * The queue server.
	 *
	 * @var QueueServer
	 */
	private $server;

	/**
	 * Asks: takes the query and the seconds left, gives a CheckAnswer.
	 *
	 * @var callable
	 */
	private $ask;

	/**
	 * Tells the time in seconds.
	 *
	 * @var callable
	 */
	private $clock;

	/**
	 * A door to one room.
	 *
	 * @param QueueServer $server The queue server.
	 * @param callable    $ask    Takes the query and the seconds left, gives a CheckAnswer.
	 * @param callable    $clock  Tells the time in seconds.
	 */
	public function __construct( QueueServer $server, callable $ask, callable $clock ) {
		$this->server = $server;
		$this->ask    = $ask;
		$this->clock  = $clock;
	}

	/**
	 * Decides.
	 *
	 * @param PageRequest $request   The request.
	 * @param array       $addresses What to ask about, see CheckQuery::addresses().
	 */
	public function decide( PageRequest $request, array $addresses ): Outcome {
		if ( null !== $request->arriving && $request->is_speculative ) {
			return new Outcome( Outcome::TURN );
		}
		$until  = ( $this->clock )() + self::BUDGET_SECONDS;
		$shown  = $this->candidates( $request );
		$forget = $request->has_useless_cookie;
		foreach ( $shown as $index => $token ) {
			$answer   = $this->question( $request, $token, $addresses, $until );
			$arriving = null !== $token && $token === $request->arriving;
			if ( CheckAnswer::QUEUE !== $answer->kind ) {
				break;
			}
			$forget = $forget || ( $answer->clear_token && null !== $token && ! $arriving );
			// A place that still waits is the visitor's own; no other is looked for.
			if ( ! ( $answer->clear_token || $arriving ) || ! $this->has_time( $until ) ) {
				break;
			}
		}
		if ( CheckAnswer::FAILURE === $answer->kind ) {
			$outcome              = new Outcome( Outcome::SERVE );
			$outcome->failover    = $answer->reason;
			$outcome->key_refused = $answer->refuses_key();
			return $outcome;
		}
		if ( CheckAnswer::PASS === $answer->kind ) {
			return $this->pass( $request, $token, $answer );
		}
		$page    = $this->server->waiting_page( $answer->waiting_room_url, $request->address );
		$outcome = new Outcome( Outcome::REDIRECT, $page );
		if ( $forget && CheckAnswer::QUEUE === $answer->kind ) {
			$outcome->cookie = '';
		}
		return $outcome;
	}

	/**
	 * The outcome for a page that the site's own rules leave out: nobody is asked.
	 *
	 * @param PageRequest $request The request.
	 */
	public function outside( PageRequest $request ): Outcome {
		return $this->pass( $request, $request->arriving, new CheckAnswer( CheckAnswer::PASS, 'out_of_scope' ) );
	}

	/**
	 * The tokens to show, best first: one that arrives with the address has to prove itself, and
	 * must not cost the visitor a pass that is stored.
	 *
	 * @param PageRequest $request The request.
	 * @return array<int, Token|null>
	 */
	private function candidates( PageRequest $request ): array {
		$known = array();
		foreach ( array_merge( array( $request->arriving ), $request->stored ) as $token ) {
			if ( null !== $token && ! isset( $known[ $token->text ] ) ) {
				$known[ $token->text ] = $token;
			}
		}
		// The same token in a cookie counts as stored, so that clearToken deletes it.
		foreach ( $request->stored as $token ) {
			$known[ $token->text ] = $token;
		}
		return array() === $known ? array( null ) : array_slice( array_values( $known ), 0, 2 );
	}

	/**
	 * Asks about one token, at every address until one is in scope.
	 *
	 * @param PageRequest $request   The request.
	 * @param Token|null  $token     The token.
	 * @param array       $addresses The addresses.
	 * @param float       $until     When the time is up.
	 */
	private function question( PageRequest $request, ?Token $token, array $addresses, float $until ): CheckAnswer {
		foreach ( $addresses as $index => $address ) {
			if ( $index > 0 && ! $this->has_time( $until ) ) {
				return new CheckAnswer( CheckAnswer::BUSY, 'out_of_time' );
			}
			if ( null === $address && ! $answer->has_query_rule ) {
				return $answer;
			}
			$query  = CheckQuery::build( $this->server->room, $request, $token, $address );
			$answer = ( $this->ask )( $query, max( 0.1, $until - ( $this->clock )() ) );
			if ( CheckAnswer::PASS !== $answer->kind || 'out_of_scope' !== $answer->reason ) {
				return $answer;
			}
		}
		return $answer;
	}

	/**
	 * Whether another question can be answered in time.
	 *
	 * @param float $until When the time is up.
	 */
	private function has_time( float $until ): bool {
		return $until - ( $this->clock )() >= self::QUESTION_SECONDS_MIN;
	}

	/**
	 * The outcome of a pass.
	 *
	 * @param PageRequest $request The request.
	 * @param Token|null  $token   The token that was shown.
	 * @param CheckAnswer $answer  The answer.
	 */
	private function pass( PageRequest $request, ?Token $token, CheckAnswer $answer ): Outcome {
		$is_outside  = 'out_of_scope' === $answer->reason;
		$is_arriving = null !== $token && $token === $request->arriving;
		// Outside, another room's pass in the address is not ours to take.
		$is_stripped = $request->is_get && ( $is_arriving || ( $request->carried_token && ! $is_outside ) );
		$outcome     = $is_stripped
			? new Outcome( Outcome::REDIRECT, $request->address )
			: new Outcome( Outcome::SERVE );

		$outcome->cookie       = $is_arriving ? $token->text : null;
		$outcome->is_protected = ! $is_outside;
		return $outcome;
	}
}
