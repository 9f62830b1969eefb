<?php
/**
 * The page Settings, Queue Manager.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Shows the settings and how their verification went. Everything printed is escaped here.
 */
final class SettingsPage {

	const SLUG = 'queue-manager';

	/**
	 * Registers the page.
	 */
	public static function register(): void {
		add_action( 'admin_menu', array( self::class, 'add' ) );
		add_action( 'admin_notices', array( Alarm::class, 'show' ) );
		add_filter( 'plugin_action_links_' . BASENAME, array( self::class, 'link' ) );
	}

	/**
	 * Adds it to the menu.
	 */
	public static function add(): void {
		add_options_page(
			'Queue Manager',
			'Queue Manager',
			'manage_options',
			self::SLUG,
			array( self::class, 'show' )
		);
	}

	/**
	 * Adds the link beside the plugin's name.
	 *
	 * @param array $links The links so far.
	 * @return array
	 */
	public static function link( $links ) {
		$address = esc_url( admin_url( 'options-general.php?page=' . self::SLUG ) );
		array_unshift( $links, '<a href="' . $address . '">' . esc_html__( 'Settings', 'queue-manager' ) . '</a>' );
		return $links;
	}

	/**
	 * Prints the page.
	 */
	public static function show(): void {
		$settings = Settings::load();
		echo '<div class="wrap"><h1>Queue Manager</h1>';
		foreach ( SettingsForm::complaints() as $complaint ) {
			echo '<div class="notice notice-error"><p>' . esc_html( $complaint ) . '</p></div>';
		}
		self::show_state( $settings );
		self::show_report( $settings );
		echo '<form method="post" action="' . esc_url( admin_url( 'admin-post.php' ) ) . '">';
		echo '<input type="hidden" name="action" value="' . esc_attr( SettingsForm::ACTION ) . '">';
		wp_nonce_field( SettingsForm::ACTION );
		echo '<table class="form-table" role="presentation">';
		self::show_fields( $settings );
		echo '</table>';
		submit_button( __( 'Save and verify', 'queue-manager' ) );
		echo '</form></div>';
	}

	/**
	 * Prints whether visitors are queued.
	 *
	 * @param Settings $settings The settings.
	 */
	private static function show_state( Settings $settings ): void {
		if ( $settings->is_armed() ) {
			$kind = 'success';
			$text = __( 'Visitors are queued. Empty your page cache once, so that no page kept from before is served without the queue.', 'queue-manager' );
		} elseif ( $settings->is_wanted ) {
			$kind = 'error';
			$text = __( 'The settings are saved, but visitors are NOT queued, because the verification did not pass.', 'queue-manager' );
		} else {
			$kind = 'info';
			$text = __( 'Visitors are not queued.', 'queue-manager' );
		}
		printf(
			'<div class="notice notice-%s inline" id="queue-manager-state"><p>%s</p></div>',
			esc_attr( $kind ),
			esc_html( $text )
		);
	}

	/**
	 * Prints the points of the verification that did not pass.
	 *
	 * @param Settings $settings The settings.
	 */
	private static function show_report( Settings $settings ): void {
		$status = $settings->status();
		$points = null === $status ? array() : array_filter(
			$status['checks'],
			static function ( $point ): bool {
				return in_array( $point['status'], array( 'fail', 'warn' ), true );
			}
		);
		if ( array() === $points ) {
			return;
		}
		$words = array(
			'fail' => __( 'Failed', 'queue-manager' ),
			'warn' => __( 'Warning', 'queue-manager' ),
		);
		echo '<h2>' . esc_html__( 'Verification', 'queue-manager' ) . '</h2><ul id="queue-manager-report">';
		foreach ( $points as $point ) {
			printf(
				'<li data-check="%s" data-status="%s"><strong>%s:</strong> %s <em>%s</em></li>',
				esc_attr( $point['id'] ),
				esc_attr( $point['status'] ),
				esc_html( $words[ $point['status'] ] ),
				esc_html( $point['title'] ),
				esc_html( $point['fix'] )
			);
		}
		echo '</ul>';
	}

	/**
	 * Prints the rows of the form.
	 *
	 * @param Settings $settings The settings.
	 */
	private static function show_fields( Settings $settings ): void {
		$is_set = '' !== $settings->key();
		self::row( 'server', __( 'Server URL', 'queue-manager' ) );
		self::input( 'server', 'url', $settings->server, 'https://queue.example.com' );
		self::row( 'room', __( 'Room ID', 'queue-manager' ) );
		self::input( 'room', 'text', $settings->room, 'checkout' );
		self::row( 'key', __( 'Public key', 'queue-manager' ) );
		self::input( 'key', 'password', '', $is_set ? __( '(unchanged)', 'queue-manager' ) : '' );
		self::help(
			defined( 'QM_PUBLIC_API_KEY' )
			? __( 'Set by QM_PUBLIC_API_KEY in wp-config.php.', 'queue-manager' )
			: __( 'The PUBLIC_API_KEY of the server, never its ADMIN_KEY.', 'queue-manager' )
		);
		self::row( 'rules', __( 'Path rules', 'queue-manager' ) );
		printf(
			'<textarea name="rules" id="rules" rows="5" class="large-text code">%s</textarea>',
			esc_textarea( implode( "\n", $settings->rules ) )
		);
		self::help( __( 'One a line, such as /checkout* or !/checkout/thank-you*. WordPress addresses end in a slash, so /checkout alone does not match /checkout/. Leave it empty to use the rules of the room.', 'queue-manager' ) );
		self::row( 'is_wanted', __( 'Queue', 'queue-manager' ) );
		printf(
			'<label><input type="checkbox" name="is_wanted" id="is_wanted" value="1"%s> %s</label>',
			checked( $settings->is_wanted, true, false ),
			esc_html__( 'Queue visitors on this site', 'queue-manager' )
		);
		echo '</td></tr>';
	}

	/**
	 * Begins a row; its field follows.
	 *
	 * @param string $name  The field.
	 * @param string $label What it is called.
	 */
	private static function row( string $name, string $label ): void {
		$close = 'server' === $name ? '' : '</td></tr>';
		// The rows differ only in these two, both escaped.
		printf(
			'%s<tr><th scope="row"><label for="%s">%s</label></th><td>',
			$close, // phpcs:ignore WordPress.Security.EscapeOutput
			esc_attr( $name ),
			esc_html( $label )
		);
	}

	/**
	 * Prints an input.
	 *
	 * @param string $name  The field.
	 * @param string $type  The kind of input.
	 * @param string $value The value.
	 * @param string $hint  What is shown while it is empty.
	 */
	private static function input( string $name, string $type, string $value, string $hint ): void {
		printf(
			'<input name="%1$s" id="%1$s" type="%2$s" value="%3$s" placeholder="%4$s" class="regular-text" autocomplete="off">',
			esc_attr( $name ),
			esc_attr( $type ),
			esc_attr( $value ),
			esc_attr( $hint )
		);
	}

	/**
	 * Prints a line of help below a field.
	 *
	 * @param string $text The text.
	 */
	private static function help( string $text ): void {
		echo '<p class="description">' . esc_html( $text ) . '</p>';
	}
}
