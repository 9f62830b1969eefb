<?php
/**
 * Tells the site's owner what would otherwise go unnoticed.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Writes to the log, and remembers for the administration pages what must not be overlooked.
 */
final class Alarm {

	const KEY_OPTION     = 'queue_manager_key_refused';
	const PROXY_OPTION   = 'queue_manager_proxy_seen';
	const REPEAT_SECONDS = 60;

	/**
	 * Writes a line to PHP's log.
	 *
	 * @param string $line What happened.
	 */
	public static function log( string $line ): void {
		error_log( 'Queue Manager: ' . $line ); // phpcs:ignore WordPress.PHP.DevelopmentFunctions
	}

	/**
	 * The queue server refuses the key: every request says so in the log.
	 *
	 * @param string $failure The failure, such as http-401.
	 */
	public static function key_refused( string $failure ): void {
		self::log( "the queue server refuses the public key ($failure): the site is UNPROTECTED" );
		if ( time() - (int) get_option( self::KEY_OPTION, 0 ) > self::REPEAT_SECONDS ) {
			update_option( self::KEY_OPTION, time() );
		}
	}

	/**
	 * A proxy stands in front and nobody told us: said once.
	 */
	public static function warn_of_proxy(): void {
		if ( get_option( self::PROXY_OPTION ) ) {
			return;
		}
		update_option( self::PROXY_OPTION, time() );
		self::log(
			'a request came with X-Forwarded-For, but neither QM_TRUSTED_PROXY nor the filter qm_client_ip'
			. ' is set. Behind a proxy every visitor is then refused at the door; see the settings page'
		);
	}

	/**
	 * Forgets what was remembered: settings have changed.
	 */
	public static function reset(): void {
		delete_option( self::KEY_OPTION );
		delete_option( self::PROXY_OPTION );
	}

	/**
	 * Shows what is remembered to those who can act on it.
	 */
	public static function show(): void {
		if ( ! current_user_can( 'manage_options' ) ) {
			return;
		}
		$settings = Settings::load();
		if ( $settings->is_armed() && get_option( self::KEY_OPTION ) ) {
			self::notice( __( 'Queue Manager: the queue server refuses the public key. The site is open to everybody until you correct it.', 'queue-manager' ) );
		}
		if ( $settings->is_wanted && ! $settings->is_armed() ) {
			self::notice( __( 'Queue Manager: visitors are not queued, because the settings have not been verified.', 'queue-manager' ) );
		}
		if ( $settings->is_armed() && get_option( self::PROXY_OPTION ) && ! defined( 'QM_TRUSTED_PROXY' ) && ! has_filter( 'qm_client_ip' ) ) {
			self::notice( __( 'Queue Manager: this site seems to stand behind a proxy. Define QM_TRUSTED_PROXY in wp-config.php, or every visitor is refused at the door.', 'queue-manager' ) );
		}
	}

	/**
	 * One notice with a link to the settings.
	 *
	 * @param string $text What to say.
	 */
	private static function notice( string $text ): void {
		printf(
			'<div class="notice notice-error"><p>%s <a href="%s">%s</a></p></div>',
			esc_html( $text ),
			esc_url( admin_url( 'options-general.php?page=' . SettingsPage::SLUG ) ),
			esc_html__( 'Settings', 'queue-manager' )
		);
	}
}
