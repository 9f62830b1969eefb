<?php
/**
 * An http(s) address read as a browser reads it (WHATWG URL), as far as rules need it.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * A page's address, taken apart and normalised.
 */
final class WebUrl {

	const BYTES_MAX = 4096;

	/**
	 * Scheme, host and port, without the default port.
	 *
	 * @var string
	 */
	public $origin = '';

	/**
	 * The path, percent-encoded, starting with a slash.
	 *
	 * @var string
	 */
	public $path = '/';

	/**
	 * The query without its question mark; null when there is none.
	 *
	 * @var string|null
	 */
	public $query = null;

	/**
	 * Reads an address.
	 *
	 * @param string $text The address.
	 * @return self|null Null when it is no page's, or over-long.
	 */
	public static function parse( string $text ): ?self {
		if ( strlen( $text ) > self::BYTES_MAX ) {
			return null;
		}
		$text = preg_replace( '/\A[\x00-\x20]+|[\x00-\x20]+\z|[\t\n\r]/', '', $text );
		if ( ! preg_match( '/\A(https?):[\/\\\\]*([^\/\\\\?#]*)([^?#]*)(\?[^#]*)?/i', $text, $parts ) ) {
			return null;
		}
		$scheme    = strtolower( $parts[1] );
		$at        = strrpos( $parts[2], '@' );
		$authority = self::authority( $scheme, false === $at ? $parts[2] : substr( $parts[2], $at + 1 ) );
		if ( '' === $authority ) {
			return null;
		}
		$url         = new self();
		$url->origin = $scheme . '://' . $authority;
		$url->path   = self::resolve( self::encode( strtr( $parts[3], '\\', '/' ), '"<>`{}' ) );
		$url->query  = isset( $parts[4] ) && '' !== $parts[4]
			? self::encode( substr( $parts[4], 1 ), '"<>\'' )
			: null;
		return $url;
	}

	/**
	 * Reads an origin as an operator writes it: scheme and host, a port if need be, at most one
	 * slash behind.
	 *
	 * @param string $text The origin.
	 * @return string The canonical origin, or ''.
	 */
	public static function parse_origin( string $text ): string {
		if ( ! preg_match( '/\Ahttps?:\/\/[^\x00-\x20\x7f\/\\\\?#@*]+\/?\z/i', $text ) ) {
			return '';
		}
		$url = self::parse( $text );
		return null === $url ? '' : $url->origin;
	}

	/**
	 * Percent-encodes what a browser encodes in this place: controls, blanks, everything that is not
	 * ASCII, and the characters named.
	 *
	 * @param string $text    The text.
	 * @param string $special The other characters to encode.
	 */
	public static function encode( string $text, string $special ): string {
		return (string) preg_replace_callback(
			'/[\x00-\x20\x7f-\xff' . preg_quote( $special, '/' ) . ']/',
			static function ( array $found ): string {
				return sprintf( '%%%02X', ord( $found[0] ) );
			},
			$text
		);
	}

	/**
	 * Resolves dot segments, encoded ones included.
	 *
	 * @param string $path The path.
	 */
	private static function resolve( string $path ): string {
		$kept     = array();
		$segments = explode( '/', '' === $path ? '' : substr( $path, 1 ) );
		$last     = count( $segments ) - 1;
		foreach ( $segments as $index => $segment ) {
			$plain = str_ireplace( '%2e', '.', $segment );
			if ( '..' === $plain ) {
				array_pop( $kept );
			}
			if ( '.' !== $plain && '..' !== $plain ) {
				$kept[] = $segment;
			} elseif ( $index === $last ) {
				$kept[] = '';
			}
		}
		return '/' . implode( '/', $kept );
	}

	/**
	 * The host in canonical text with the port, unless that is the scheme's own.
	 *
	 * @param string $scheme    The scheme.
	 * @param string $authority Host and port as written.
	 * @return string '' when it is none.
	 */
	private static function authority( string $scheme, string $authority ): string {
		if ( ! preg_match( '/\A(\[[^\]]*\]|[^:]*)(?::([0-9]*))?\z/', $authority, $parts ) ) {
			return '';
		}
		$host = WebHost::parse( $parts[1] );
		$port = isset( $parts[2] ) ? ltrim( $parts[2], '0' ) : '';
		if ( isset( $parts[2] ) && '' !== $parts[2] && '' === $port ) {
			$port = '0';
		}
		if ( '' === $host || strlen( $port ) > 5 || (int) $port > 65535 ) {
			return '';
		}
		$own_port = 'https' === $scheme ? '443' : '80';
		return '' === $port || $own_port === $port ? $host : $host . ':' . $port;
	}
}
