<?php
/**
 * The gate in front of every page of the site.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Runs before any output, reads the request, lets the door decide and sends what comes of it. A
 * fault of ours serves the page and says so; input of a visitor that we cannot read queues.
 */
final class Gate {

	/** Before the shop plug-ins that answer requests of their own at this point. */
	const PRIORITY = -1000;

	const COOKIE_SECONDS = 86400;

	/**
	 * Puts the gate up when the queue is armed.
	 */
	public static function register(): void {
		add_action( 'template_redirect', array( self::class, 'run' ), self::PRIORITY );
	}

	/**
	 * Judges the request; ends it when the visitor does not get the page.
	 */
	public static function run(): void {
		$settings = Settings::load();
		if ( ! $settings->is_armed() ) {
			return;
		}
		try {
			$outcome = self::decide( $settings );
		} catch ( \Throwable $fault ) {
			$outcome           = new Outcome( Outcome::SERVE );
			$outcome->failover = 'unreachable';
			Alarm::log( 'the gate failed, so the page is open: ' . $fault->getMessage() );
		}
		self::send( $outcome, $settings->room );
	}

	/**
	 * Decides about this request.
	 *
	 * @param Settings $settings The settings.
	 */
	private static function decide( Settings $settings ): Outcome {
		$proxy   = defined( 'QM_TRUSTED_PROXY' ) ? constant( 'QM_TRUSTED_PROXY' ) : null;
		$server  = wp_unslash( $_SERVER );
		$ip      = self::client_address( $proxy, $server );
		$request = new PageRequest( $server, Site::origin(), $settings->room, $ip );
		if ( self::is_for_machines( $request ) ) {
			$outcome               = new Outcome( Outcome::SERVE );
			$outcome->is_protected = false;
			return $outcome;
		}
		$queue   = new QueueServer( $settings->server, $settings->room );
		$client  = new CheckClient( $settings->server, $settings->key() );
		$clock   = static function (): float {
			return hrtime( true ) / 1e9;
		};
		$door    = new Door( $queue, array( $client, 'check' ), $clock );

		$canonical = Site::canonical( $request->address, $request->is_get );
		$rules     = RuleSet::stored( $settings->rules );
		$is_out    = static function ( string $address ) use ( $rules ): bool {
			return RuleSet::OUT === $rules->decide( $address )['scope'];
		};
		if ( $is_out( $request->address ) && ( '' === $canonical || $is_out( $canonical ) ) ) {
			return $door->outside( $request );
		}
		if ( '' === $ip ) {
			Alarm::log( 'the visitor has no address to vouch for, so the page is open' );
			$outcome           = new Outcome( Outcome::SERVE );
			$outcome->failover = 'unreachable';
			return $outcome;
		}
		return $door->decide( $request, CheckQuery::addresses( $request, $canonical, ! $rules->is_empty() ) );
	}

	/**
	 * Whether the request is for one of the two files that WordPress makes up for crawlers and
	 * browsers. The exact address counts: `?robots=1` on another one could carry a shop's action.
	 *
	 * @param PageRequest $request The request.
	 */
	private static function is_for_machines( PageRequest $request ): bool {
		$target = substr( $request->address, strlen( Site::origin() ) );
		return ( is_robots() && '/robots.txt' === $target ) || ( is_favicon() && '/favicon.ico' === $target );
	}

	/**
	 * The address to vouch for.
	 *
	 * @param mixed $proxy  The value of QM_TRUSTED_PROXY, or null.
	 * @param array $server The server variables.
	 */
	private static function client_address( $proxy, array $server ): string {
		$address = ClientAddress::read( $proxy, $server );
		if ( has_filter( 'qm_client_ip' ) ) {
			/**
			 * Filters the visitor's address. What is no address is ignored.
			 *
			 * @param string $address The address found.
			 */
			$filtered = Address::parse( apply_filters( 'qm_client_ip', $address ) );
			return '' === $filtered ? $address : $filtered;
		}
		if ( ClientAddress::proxy_unconfigured( $proxy, $server ) ) {
			Alarm::warn_of_proxy();
		}
		return $address;
	}

	/**
	 * Sends the outcome; returns when the page is to be served.
	 *
	 * @param Outcome $outcome The outcome.
	 * @param string  $room    The room's id.
	 */
	private static function send( Outcome $outcome, string $room ): void {
		if ( $outcome->key_refused ) {
			Alarm::key_refused( $outcome->failover );
		}
		if ( Outcome::SERVE === $outcome->kind && ! $outcome->is_protected ) {
			return;
		}
		if ( ! defined( 'DONOTCACHEPAGE' ) ) {
			define( 'DONOTCACHEPAGE', true ); // The word between WordPress's page caches.
		}
		if ( headers_sent() ) {
			self::send_late( $outcome );
			return;
		}
		if ( null !== $outcome->cookie ) {
			self::set_cookie( $room, $outcome->cookie );
		}
		if ( Outcome::SERVE === $outcome->kind ) {
			$is_kept = null === $outcome->cookie && '' === $outcome->failover;
			header( 'Cache-Control: private, no-cache' . ( $is_kept ? '' : ', no-store' ) );
			header_remove( 'X-QM-Failover' );
			if ( '' !== $outcome->failover ) {
				header( 'X-QM-Failover: ' . $outcome->failover );
			}
			return;
		}
		header( 'Cache-Control: no-store' );
		header_remove( 'Last-Modified' );
		if ( Outcome::TURN === $outcome->kind ) {
			status_header( 503 );
			exit;
		}
		header( 'Location: ' . $outcome->location, true, 302 );
		exit;
	}

	/**
	 * Something has written before us, so no header can be sent: a link takes the place of the page.
	 *
	 * @param Outcome $outcome The outcome.
	 */
	private static function send_late( Outcome $outcome ): void {
		Alarm::log( 'output began before the gate could answer; look for a file with a byte order mark' );
		if ( Outcome::SERVE === $outcome->kind ) {
			return;
		}
		if ( Outcome::REDIRECT === $outcome->kind ) {
			printf(
				'<a href="%s">%s</a>',
				esc_url( $outcome->location ),
				esc_html__( 'Continue', 'queue-manager' )
			);
		}
		exit;
	}

	/**
	 * Stores the token, or deletes it.
	 *
	 * @param string $room  The room's id.
	 * @param string $token The token; '' deletes it.
	 */
	private static function set_cookie( string $room, string $token ): void {
		setcookie(
			'qm_' . $room,
			$token,
			array(
				'expires'  => '' === $token ? 1 : time() + self::COOKIE_SECONDS,
				'path'     => '/',
				'secure'   => Site::is_https(),
				'httponly' => true,
				'samesite' => 'Lax',
			)
		);
	}
}
