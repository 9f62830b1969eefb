<?php
/**
 * Asks the queue server whether an installation with these settings works.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Every save verifies; until that passes the queue is not armed.
 */
final class Verification {

	const SECONDS = 8.0;

	/**
	 * Verifies the settings and remembers how it went.
	 *
	 * @param Settings $settings The settings, already saved.
	 */
	public static function run( Settings $settings ): void {
		$missing = self::missing( $settings );
		if ( array() !== $missing ) {
			$settings->remember( false, $missing );
			return;
		}
		$client   = new CheckClient( $settings->server, $settings->key() );
		$query    = array(
			'roomId'    => $settings->room,
			'origin'    => Site::origin(),
			'connector' => 'wordpress',
			'version'   => VERSION,
		);
		$response = $client->get( '/api/v1/verify?' . http_build_query( $query ), self::SECONDS );
		if ( is_wp_error( $response ) ) {
			$settings->remember( false, array( self::unreachable( $response->get_error_message() ) ) );
			return;
		}
		$report = json_decode( (string) wp_remote_retrieve_body( $response ), true, 16 );
		$checks = is_array( $report ) && isset( $report['checks'] ) ? self::read( $report['checks'] ) : array();
		$status = (int) wp_remote_retrieve_response_code( $response );
		if ( 200 !== $status || array() === $checks || ! isset( $report['ok'] ) ) {
			$settings->remember( false, array( self::unreachable( 'HTTP ' . $status ) ) );
			return;
		}
		$failed = in_array( 'fail', array_column( $checks, 'status' ), true );
		$settings->remember( true === $report['ok'] && ! $failed, $checks );
	}

	/**
	 * What cannot even be asked about.
	 *
	 * @param Settings $settings The settings.
	 * @return array[]
	 */
	private static function missing( Settings $settings ): array {
		$points = array();
		if ( '' === $settings->server ) {
			$points[] = self::point( 'server', __( 'The server URL is missing.', 'queue-manager' ), '' );
		}
		if ( '' === $settings->room ) {
			$points[] = self::point( 'room', __( 'The room ID is missing.', 'queue-manager' ), '' );
		}
		if ( '' === $settings->key() ) {
			$points[] = self::point(
				'public_key',
				__( 'The public key is missing.', 'queue-manager' ),
				__( 'Without it the queue sees this server instead of the visitor and lets nobody in.', 'queue-manager' )
			);
		}
		return $points;
	}

	/**
	 * The server gave no report.
	 *
	 * @param string $detail Why.
	 */
	private static function unreachable( string $detail ): array {
		return self::point(
			'server',
			/* translators: %s: technical reason, such as HTTP 502. */
			sprintf( __( 'The queue server gave no report (%s).', 'queue-manager' ), $detail ),
			__( 'Check the server URL, and whether this site may connect to it.', 'queue-manager' )
		);
	}

	/**
	 * A failing point of our own.
	 *
	 * @param string $id    Its id.
	 * @param string $title What is wrong.
	 * @param string $fix   What to do.
	 */
	private static function point( string $id, string $title, string $fix ): array {
		return array(
			'id'     => $id,
			'status' => 'fail',
			'title'  => $title,
			'fix'    => $fix,
		);
	}

	/**
	 * The points of a report, as texts of a bounded length.
	 *
	 * @param mixed $checks What the server sent.
	 * @return array[]
	 */
	private static function read( $checks ): array {
		$points = array();
		foreach ( is_array( $checks ) ? array_slice( $checks, 0, 50 ) : array() as $check ) {
			$point = array();
			foreach ( array( 'id', 'status', 'title', 'detail', 'fix' ) as $name ) {
				$is_text        = is_array( $check ) && isset( $check[ $name ] ) && is_string( $check[ $name ] );
				$point[ $name ] = $is_text ? substr( wp_check_invalid_utf8( $check[ $name ], true ), 0, 500 ) : '';
			}
			$points[] = $point;
		}
		return $points;
	}
}
