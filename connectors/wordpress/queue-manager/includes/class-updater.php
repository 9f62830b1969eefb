<?php
/**
 * Updates from the queue server this site uses, and from nowhere else.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Takes part in WordPress's own update cycle. The header Update URI keeps the public directory,
 * where somebody else could have a plugin of this name, from being asked.
 */
final class Updater {

	const SECONDS           = 5.0;
	const DOWNLOAD_SECONDS  = 60.0;
	const PACKAGE_BYTES_MAX = 16777216;

	/** The host of the header Update URI; it names nobody and is never connected to. */
	const HOST = 'queue-manager.invalid';

	/**
	 * Registers with the update cycle.
	 */
	public static function register(): void {
		add_filter( 'update_plugins_' . self::HOST, array( self::class, 'offer' ), 10, 3 );
		add_filter( 'site_transient_update_plugins', array( self::class, 'refuse_others' ) );
		add_filter( 'upgrader_pre_download', array( self::class, 'download' ), 10, 4 );
		add_filter( 'plugins_api', array( self::class, 'details' ), 10, 3 );
	}

	/**
	 * Tells WordPress which version the queue server offers.
	 *
	 * @param mixed  $update What other code said.
	 * @param array  $data   The plugin's headers.
	 * @param string $file   The plugin.
	 * @return mixed
	 */
	public static function offer( $update, $data, $file ) {
		$release = BASENAME === $file ? self::release() : null;
		return null === $release ? $update : $release->update( Settings::load()->server );
	}

	/**
	 * Drops an update of this plugin that is not from the configured server, whoever put it there.
	 *
	 * @param mixed $updates WordPress's list.
	 * @return mixed
	 */
	public static function refuse_others( $updates ) {
		if ( ! is_object( $updates ) || ! isset( $updates->response ) || ! is_array( $updates->response ) ) {
			return $updates;
		}
		if ( isset( $updates->response[ BASENAME ] ) && '' === self::digest( $updates->response[ BASENAME ] ) ) {
			unset( $updates->response[ BASENAME ] );
		}
		return $updates;
	}

	/**
	 * Downloads a package of ours and hands it on only with the digest the registry announced.
	 *
	 * @param mixed  $reply    What other code said.
	 * @param string $package  The package's address.
	 * @param object $upgrader WordPress's upgrader.
	 * @param array  $extra    What is upgraded.
	 * @return mixed
	 */
	public static function download( $reply, $package, $upgrader = null, $extra = array() ) {
		$updates = get_site_transient( 'update_plugins' );
		$update  = isset( $updates->response[ BASENAME ] ) ? $updates->response[ BASENAME ] : null;
		$is_ours = ( isset( $extra['plugin'] ) && BASENAME === $extra['plugin'] )
			|| ( isset( $update->package ) && $update->package === $package );
		if ( ! $is_ours ) {
			return $reply;
		}
		$digest = self::digest( $update );
		if ( '' === $digest || $update->package !== $package ) {
			return new \WP_Error( 'queue_manager_update', __( 'This update does not come from the configured queue server.', 'queue-manager' ) );
		}
		$file = wp_tempnam( 'queue-manager.zip' );
		// Not download_url(), which refuses servers in a private network and on other ports.
		$response = wp_remote_get(
			$package,
			array(
				'timeout'             => self::DOWNLOAD_SECONDS,
				'redirection'         => 0,
				'stream'              => true,
				'filename'            => $file,
				'limit_response_size' => self::PACKAGE_BYTES_MAX,
			)
		);
		if ( is_wp_error( $response ) ) {
			wp_delete_file( $file );
			return $response;
		}
		if ( ! hash_equals( $digest, (string) hash_file( 'sha256', $file ) ) ) {
			wp_delete_file( $file );
			return new \WP_Error( 'queue_manager_update', __( 'The package is not the one that the queue server announced.', 'queue-manager' ) );
		}
		return $file;
	}

	/**
	 * Details for WordPress's window, which would ask the public directory otherwise.
	 *
	 * @param mixed  $result What other code said.
	 * @param string $action What is asked.
	 * @param object $args   Which plugin.
	 * @return mixed
	 */
	public static function details( $result, $action, $args ) {
		if ( 'plugin_information' !== $action || ! isset( $args->slug ) || 'queue-manager' !== $args->slug ) {
			return $result;
		}
		$release = self::release();
		return null === $release
			? new \WP_Error( 'queue_manager_update', __( 'The queue server gives no details now.', 'queue-manager' ) )
			: $release->details( Settings::load()->server );
	}

	/**
	 * The digest an update of ours must have; '' when it is none of ours.
	 *
	 * @param mixed $update The entry in WordPress's list.
	 */
	private static function digest( $update ): string {
		$server = Settings::load()->server;
		if ( ! is_object( $update ) || '' === $server || ! isset( $update->package, $update->sha256 ) ) {
			return '';
		}
		$url = WebUrl::parse( (string) $update->package );
		return null !== $url && $url->origin === $server ? (string) $update->sha256 : '';
	}

	/**
	 * The release the queue server announces; null when it cannot be asked or announces none.
	 */
	private static function release(): ?Release {
		$server = Settings::load()->server;
		if ( '' === $server ) {
			return null;
		}
		$response = ( new CheckClient( $server, '' ) )->get( '/api/connectors/wordpress/update', self::SECONDS );
		$is_there = ! is_wp_error( $response ) && 200 === (int) wp_remote_retrieve_response_code( $response );
		return $is_there ? Release::parse( (string) wp_remote_retrieve_body( $response ), $server ) : null;
	}
}
