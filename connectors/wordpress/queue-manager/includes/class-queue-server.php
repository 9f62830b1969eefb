<?php
/**
 * The queue server as configured: its origin, and where a visitor may be sent on it.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * One origin. No answer, however broken, sends a visitor anywhere else.
 */
final class QueueServer {

	const ADDRESS_BYTES_MAX = 4000;

	/**
	 * The origin, without a slash behind.
	 *
	 * @var string
	 */
	public $origin;

	/**
	 * The room's id.
	 *
	 * @var string
	 */
	public $room;

	/**
	 * A server and a room on it.
	 *
	 * @param string $origin The origin, canonical.
	 * @param string $room   The room's id.
	 */
	public function __construct( string $origin, string $room ) {
		$this->origin = $origin;
		$this->room   = $room;
	}

	/**
	 * Whether a text can be a room's id.
	 *
	 * @param string $text The text.
	 */
	public static function is_room( string $text ): bool {
		return 1 === preg_match( '/\A[\w-]{1,64}\z/', $text );
	}

	/**
	 * The address of the waiting page that leads back to a page of this site.
	 *
	 * @param mixed  $named What the server named as its waiting page.
	 * @param string $back  The page's address; given up when it is too long to be carried along.
	 */
	public function waiting_page( $named, string $back ): string {
		$own  = $this->origin . '/w/' . rawurlencode( $this->room );
		$page = is_string( $named ) ? $this->resolve( $named ) : '';
		$page = '' === $page ? $own : $page;
		foreach ( array( $back, explode( '?', $back, 2 )[0] ) as $form ) {
			$glue    = false === strpos( $page, '?' ) ? '?' : '&';
			$address = $page . $glue . 'qm_return=' . rawurlencode( $form );
			if ( strlen( $address ) <= self::ADDRESS_BYTES_MAX ) {
				return $address;
			}
		}
		return $own;
	}

	/**
	 * An address on this server, absolute; '' for any other.
	 *
	 * @param string $named Absolute or relative, as the server answered it.
	 */
	private function resolve( string $named ): string {
		$named    = trim( $named );
		$absolute = preg_match( '/\Ahttps?:\/\//i', $named ) ? $named : $this->origin . $named;
		$is_path  = '' !== $named && '/' === $named[0] && ! preg_match( '/\A\/[\/\\\\]/', $named );
		$url      = $absolute === $named || $is_path ? WebUrl::parse( $absolute ) : null;
		if ( null === $url || $url->origin !== $this->origin || preg_match( '/[\x00-\x20\\\\@]/', $named ) ) {
			return '';
		}
		return $url->origin . $url->path . ( null === $url->query ? '' : '?' . $url->query );
	}
}
