<?php
/**
 * What an answer of the queue server to a check means.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * One of four: the visitor passes, queues, queues because the queue is busy, or the queue failed.
 */
final class CheckAnswer {

	const PASS    = 'pass';
	const QUEUE   = 'queue';
	const BUSY    = 'busy';
	const FAILURE = 'failure';

	const BODY_BYTES_MAX = 65536;

	/**
	 * PASS, QUEUE, BUSY or FAILURE.
	 *
	 * @var string
	 */
	public $kind;

	/**
	 * The queue's reason, or how it failed, as the header X-QM-Failover names it.
	 *
	 * @var string
	 */
	public $reason;

	/**
	 * The waiting page as named by the queue; anything.
	 *
	 * @var mixed
	 */
	public $waiting_room_url = null;

	/**
	 * Whether the token that was sent must be forgotten.
	 *
	 * @var bool
	 */
	public $clear_token = false;

	/**
	 * Whether a rule of the room may look at a page's query; true when that is not known.
	 *
	 * @var bool
	 */
	public $has_query_rule = true;

	/**
	 * A meaning.
	 *
	 * @param string $kind   PASS, QUEUE, BUSY or FAILURE.
	 * @param string $reason The reason.
	 */
	public function __construct( string $kind, string $reason ) {
		$this->kind   = $kind;
		$this->reason = $reason;
	}

	/**
	 * Reads an answer.
	 *
	 * @param int    $status The status.
	 * @param string $body   The body.
	 */
	public static function read( int $status, string $body ): self {
		$members = strlen( $body ) > self::BODY_BYTES_MAX ? null : json_decode( $body, true, 16 );
		$members = is_array( $members ) ? $members : array();
		$code    = isset( $members['code'] ) ? $members['code'] : '';
		if ( 429 === $status || ( 503 === $status && 'server_saturated' === $code ) ) {
			return new self( self::BUSY, 'busy' );
		}
		if ( in_array( $status, array( 400, 413, 414 ), true ) ) {
			return new self( self::QUEUE, 'unusable_request' );
		}
		if ( $status > 200 && $status < 300 ) {
			return new self( self::FAILURE, 'invalid-response' );
		}
		if ( 200 !== $status ) {
			return new self( self::FAILURE, 'http-' . $status );
		}
		$action = isset( $members['action'] ) ? $members['action'] : '';
		if ( self::PASS !== $action && self::QUEUE !== $action ) {
			return new self( self::FAILURE, 'invalid-response' );
		}
		$reason = isset( $members['reason'] ) && is_string( $members['reason'] ) ? $members['reason'] : '';
		$answer = new self( $action, $reason );

		$answer->waiting_room_url = isset( $members['waitingRoomUrl'] ) ? $members['waitingRoomUrl'] : null;
		$answer->clear_token      = isset( $members['clearToken'] ) && true === $members['clearToken'];
		$answer->has_query_rule   = self::looks_at_queries( $members );
		return $answer;
	}

	/**
	 * Whether a rule listed in an answer has a question mark; true when none is listed.
	 *
	 * @param array $members The answer.
	 */
	private static function looks_at_queries( array $members ): bool {
		$rules = isset( $members['targeting']['patterns'] ) ? $members['targeting']['patterns'] : null;
		if ( ! is_array( $rules ) ) {
			return true;
		}
		foreach ( $rules as $rule ) {
			$pattern = isset( $rule['pattern'] ) ? $rule['pattern'] : null;
			if ( ! is_string( $pattern ) || false !== strpos( $pattern, '?' ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Whether the server refuses our key, which leaves the room open until somebody notices.
	 */
	public function refuses_key(): bool {
		return in_array( $this->reason, array( 'http-401', 'http-403' ), true );
	}
}
