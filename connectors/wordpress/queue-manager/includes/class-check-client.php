<?php
/**
 * Asks the queue server, over WordPress's own HTTP client.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * One GET each. Redirects are not followed: a queue server that redirects is misconfigured.
 */
final class CheckClient {

	/**
	 * The origin of the queue server.
	 *
	 * @var string
	 */
	private $origin;

	/**
	 * The public key.
	 *
	 * @var string
	 */
	private $key;

	/**
	 * A client of one server.
	 *
	 * @param string $origin The server's origin.
	 * @param string $key    The public key; '' sends none.
	 */
	public function __construct( string $origin, string $key ) {
		$this->origin = $origin;
		$this->key    = $key;
	}

	/**
	 * Asks the door.
	 *
	 * @param string $query   The query.
	 * @param float  $seconds How long to wait at most.
	 */
	public function check( string $query, float $seconds ): CheckAnswer {
		$until = microtime( true ) + $seconds;
		$guard = static function () use ( $until ): void {
			if ( microtime( true ) > $until ) {
				throw new SlowAnswer();
			}
		};
		// Without the curl extension the timeout counts from byte to byte, not for the whole answer.
		add_action( 'requests-request.progress', $guard );
		try {
			$response = $this->get( '/api/v1/check?' . $query, $seconds );
		} catch ( SlowAnswer $slow ) {
			return new CheckAnswer( CheckAnswer::FAILURE, 'timeout' );
		} finally {
			remove_action( 'requests-request.progress', $guard );
		}
		if ( is_wp_error( $response ) ) {
			$message = $response->get_error_message();
			$reason  = preg_match( '/timed? ?out|cURL error 28/i', $message ) ? 'timeout' : 'unreachable';
			return new CheckAnswer( CheckAnswer::FAILURE, $reason );
		}
		return CheckAnswer::read(
			(int) wp_remote_retrieve_response_code( $response ),
			(string) wp_remote_retrieve_body( $response )
		);
	}

	/**
	 * Gets a document.
	 *
	 * @param string $target  Path and query.
	 * @param float  $seconds How long to wait at most.
	 * @return array|\WP_Error
	 */
	public function get( string $target, float $seconds ) {
		$headers = array( 'Accept' => 'application/json' );
		if ( '' !== $this->key ) {
			$headers['Authorization'] = 'Bearer ' . $this->key;
		}
		return wp_remote_get(
			$this->origin . $target,
			array(
				'timeout'             => $seconds,
				'redirection'         => 0,
				'limit_response_size' => CheckAnswer::BODY_BYTES_MAX + 1,
				'headers'             => $headers,
				'user-agent'          => 'queue-manager-wordpress/' . VERSION,
			)
		);
	}
}
