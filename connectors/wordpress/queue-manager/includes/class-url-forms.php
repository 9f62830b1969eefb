<?php
/**
 * The forms of a page's path and query that rules are compared with.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Readers of a URL disagree about encodings, slashes and `;…`. Each form is a pair: the path, and
 * the path with its query, lower-cased within ASCII.
 */
final class UrlForms {

	/**
	 * The forms an exception needs all of, and an inclusion one of.
	 *
	 * @var array<int, array{0: string, 1: string}>
	 */
	public $plain = array();

	/**
	 * Those, and the one that only inclusions look at: path parameters cut from each segment.
	 *
	 * @var array<int, array{0: string, 1: string}>
	 */
	public $generous = array();

	/**
	 * Makes the forms of a page.
	 *
	 * @param WebUrl $url The page's address.
	 */
	public function __construct( WebUrl $url ) {
		$path  = (string) preg_replace( '/\/{2,}/', '/', self::decode( $url->path ) );
		$query = null === $url->query ? null : self::decode( $url->query );

		$this->plain = array( self::form( $url->path, $url->query ), self::form( $path, $query ) );

		list( $climbed, $climbs ) = self::as_server( str_ireplace( array( '%2f', '%5c' ), '/', $path ) );
		if ( $climbs ) {
			$this->plain[] = self::form( $climbed, $query );
		}
		$this->generous = $this->plain;
		if ( false !== strpos( $path, ';' ) ) {
			$this->generous[] = self::form( self::as_server( $path )[0], $query );
		}
	}

	/**
	 * Decodes the encoded characters that mean the same either way (RFC 3986, 2.3), once.
	 *
	 * @param string $text Percent-encoded text.
	 */
	public static function decode( string $text ): string {
		return (string) preg_replace_callback(
			'/%([0-9A-Fa-f]{2})/',
			static function ( array $found ): string {
				$character = chr( (int) hexdec( $found[1] ) );
				return preg_match( '/[A-Za-z0-9._~-]/', $character ) ? $character : $found[0];
			},
			$text
		);
	}

	/**
	 * One form.
	 *
	 * @param string      $path  The path.
	 * @param string|null $query The query, if any.
	 * @return array{0: string, 1: string}
	 */
	private static function form( string $path, ?string $query ): array {
		$full = null === $query ? $path : $path . '?' . $query;
		return array( self::lower( $path ), self::lower( $full ) );
	}

	/**
	 * Lower-cases ASCII and nothing else, whatever the locale.
	 *
	 * @param string $text The text.
	 */
	public static function lower( string $text ): string {
		return strtr( $text, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz' );
	}

	/**
	 * The path as a server that drops path parameters reads it, and whether it had dot segments
	 * then that a browser could not see.
	 *
	 * @param string $path The path.
	 * @return array{0: string, 1: bool}
	 */
	private static function as_server( string $path ): array {
		$kept   = array();
		$climbs = false;
		$ends   = false;
		foreach ( explode( '/', $path ) as $segment ) {
			$segment = explode( ';', $segment, 2 )[0];
			$is_dots = '.' === $segment || '..' === $segment;
			$climbs  = $climbs || $is_dots;
			$ends    = $is_dots || '' === $segment;
			if ( '..' === $segment ) {
				array_pop( $kept );
			} elseif ( ! $ends ) {
				$kept[] = $segment;
			}
		}
		$out = '/' . implode( '/', $kept );
		return array( $ends && array() !== $kept ? $out . '/' : $out, $climbs );
	}
}
