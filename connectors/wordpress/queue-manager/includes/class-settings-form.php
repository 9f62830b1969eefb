<?php
/**
 * What was typed into the settings page.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Reads the form into settings. What cannot be used is named and leaves its field empty, so that
 * the queue is never armed with something else than what was typed.
 */
final class SettingsForm {

	const ACTION = 'queue_manager_save';

	/**
	 * Registers the handler.
	 */
	public static function register(): void {
		add_action( 'admin_post_' . self::ACTION, array( self::class, 'receive' ) );
	}

	/**
	 * Saves, verifies and leads back to the page.
	 */
	public static function receive(): void {
		if ( ! current_user_can( 'manage_options' ) ) {
			wp_die( esc_html__( 'You are not allowed to do this.', 'queue-manager' ), '', array( 'response' => 403 ) );
		}
		check_admin_referer( self::ACTION );
		list( $settings, $complaints ) = self::read( wp_unslash( $_POST ), Settings::load() );
		$settings->save();
		Alarm::reset();
		Verification::run( $settings );
		set_transient( self::ACTION . get_current_user_id(), $complaints, 60 );
		wp_safe_redirect( admin_url( 'options-general.php?page=' . SettingsPage::SLUG . '&saved=1' ) );
		exit;
	}

	/**
	 * What the last save of this person could not use, once.
	 *
	 * @return string[]
	 */
	public static function complaints(): array {
		$name       = self::ACTION . get_current_user_id();
		$complaints = get_transient( $name );
		delete_transient( $name );
		return is_array( $complaints ) ? $complaints : array();
	}

	/**
	 * Reads the form.
	 *
	 * @param array    $form   The fields, without added slashes.
	 * @param Settings $before The settings so far.
	 * @return array{0: Settings, 1: string[]}
	 */
	public static function read( array $form, Settings $before ): array {
		$settings   = new Settings();
		$complaints = array();

		$server           = rtrim( trim( self::text( $form, 'server' ) ), '/' );
		$settings->server = WebUrl::parse_origin( $server );
		if ( '' !== $server && '' === $settings->server ) {
			$complaints[] = __( 'The server URL must be an origin such as https://queue.example.com, without a path.', 'queue-manager' );
		}
		$room           = trim( self::text( $form, 'room' ) );
		$settings->room = QueueServer::is_room( $room ) ? $room : '';
		if ( '' !== $room && '' === $settings->room ) {
			$complaints[] = __( 'The room ID has 1 to 64 letters, digits, underscores or hyphens.', 'queue-manager' );
		}
		$key                  = trim( self::text( $form, 'key' ) );
		$settings->stored_key = '' === $key ? $before->stored_key : $key;
		if ( ! preg_match( '/\A[\x21-\x7e]*\z/', $settings->stored_key ) ) {
			$settings->stored_key = '';
			$complaints[]         = __( 'The public key contains characters that no key has.', 'queue-manager' );
		}
		$settings->is_wanted = '1' === self::text( $form, 'is_wanted' );
		$settings->rules     = RuleSet::lines( self::text( $form, 'rules' ) );
		try {
			new RuleSet( $settings->rules );
		} catch ( InvalidRule $fault ) {
			// The rules so far stay: fewer rules could leave pages open that were protected.
			$settings->rules = $before->rules;
			$complaints[]    = self::rule_complaint( $fault->getMessage() );
		}
		return array( $settings, $complaints );
	}

	/**
	 * A field of the form.
	 *
	 * @param array  $form The fields.
	 * @param string $name The field's name.
	 */
	private static function text( array $form, string $name ): string {
		return isset( $form[ $name ] ) && is_string( $form[ $name ] ) ? $form[ $name ] : '';
	}

	/**
	 * Why the rules were not saved.
	 *
	 * @param string $problem The kind of fault.
	 */
	private static function rule_complaint( string $problem ): string {
		$texts = array(
			'too_many'           => __( 'at most 25 rules', 'queue-manager' ),
			'too_long'           => __( 'at most 300 characters in a rule', 'queue-manager' ),
			'too_many_wildcards' => __( 'at most 10 * in a rule', 'queue-manager' ),
			'control_character'  => __( 'a rule must not contain control characters', 'queue-manager' ),
			'fragment'           => __( 'a rule must not contain #, which is never compared', 'queue-manager' ),
			'start'              => __( 'a rule starts with /, * or https:// (after !)', 'queue-manager' ),
			'plain_http'         => __( 'a full rule is https://, or starts with / or *', 'queue-manager' ),
			'no_path'            => __( 'a full rule has a path after the host, such as /*', 'queue-manager' ),
			'host'               => __( 'a full rule names one host after https://', 'queue-manager' ),
		);
		/* translators: %s: what is wrong with a rule. */
		return sprintf( __( 'The path rules were not saved: %s.', 'queue-manager' ), $texts[ $problem ] );
	}
}
