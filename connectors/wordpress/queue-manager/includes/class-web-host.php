<?php
/**
 * The host of a web address in the one form that can be compared.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Reads hosts: names, names of other scripts, IPv4 in every spelling, IPv6 in brackets.
 */
final class WebHost {

	/**
	 * Reads a host.
	 *
	 * @param string $text The host as written.
	 * @return string The canonical host, or '' when it is none.
	 */
	public static function parse( string $text ): string {
		if ( '' !== $text && '[' === $text[0] ) {
			$ip = substr( $text, 1, -1 );
			if ( ']' !== substr( $text, -1 ) || ! filter_var( $ip, FILTER_VALIDATE_IP, FILTER_FLAG_IPV6 ) ) {
				return '';
			}
			return '[' . self::ipv6( (string) inet_pton( $ip ) ) . ']';
		}
		$host = self::to_ascii( rawurldecode( $text ) );
		if ( '' === $host || preg_match( '/[\x00-\x20\x7f-\xff#\/:<>?@\[\\\\\]^|%]/', $host ) ) {
			return '';
		}
		$labels = explode( '.', '.' === substr( $host, -1 ) ? substr( $host, 0, -1 ) : $host );
		$last   = (string) end( $labels );
		return preg_match( '/\A(?:[0-9]+|0x[0-9a-f]*)\z/', $last ) ? self::ipv4( $labels ) : $host;
	}

	/**
	 * The address in the text form of browsers, which never mixes in dotted numbers.
	 *
	 * @param string $bytes The 16 bytes.
	 */
	private static function ipv6( string $bytes ): string {
		$text = (string) inet_ntop( $bytes );
		if ( false === strpos( $text, '.' ) ) {
			return $text;
		}
		$tail = unpack( 'n2', substr( $bytes, 12 ) );
		return substr( $text, 0, (int) strrpos( $text, ':' ) + 1 ) . dechex( $tail[1] ) . ':' . dechex( $tail[2] );
	}

	/**
	 * Reads IPv4 numbers: decimal, octal, hexadecimal, one to four parts.
	 *
	 * @param string[] $parts The parts.
	 */
	private static function ipv4( array $parts ): string {
		$count = count( $parts );
		$value = 0;
		if ( $count > 4 ) {
			return '';
		}
		foreach ( $parts as $index => $part ) {
			$number = self::number( $part );
			$limit  = $index === $count - 1 ? 256 ** ( 5 - $count ) : 256;
			if ( $number < 0 || $number >= $limit ) {
				return '';
			}
			$value += $index === $count - 1 ? $number : $number * 256 ** ( 3 - $index );
		}
		return long2ip( (int) $value );
	}

	/**
	 * One number of an IPv4 address.
	 *
	 * @param string $text The number as written.
	 * @return int -1 when it is none.
	 */
	private static function number( string $text ): int {
		if ( preg_match( '/\A0x([0-9a-f]{0,8})\z/', $text, $found ) ) {
			return (int) hexdec( $found[1] );
		}
		if ( preg_match( '/\A0([0-7]{1,11})\z/', $text, $found ) ) {
			return (int) octdec( $found[1] );
		}
		return preg_match( '/\A(?:0|[1-9][0-9]{0,9})\z/', $text ) ? (int) $text : -1;
	}

	/**
	 * The name in ASCII, lower-cased; other scripts as punycode.
	 *
	 * @param string $host The name.
	 * @return string '' when it has no such form.
	 */
	private static function to_ascii( string $host ): string {
		if ( ! preg_match( '/[\x80-\xff]/', $host ) ) {
			return strtolower( $host );
		}
		if ( function_exists( 'idn_to_ascii' ) ) {
			$flags = IDNA_CHECK_BIDI | IDNA_CHECK_CONTEXTJ | IDNA_NONTRANSITIONAL_TO_ASCII;
			$ascii = idn_to_ascii( $host, $flags, INTL_IDNA_VARIANT_UTS46 );
			return is_string( $ascii ) ? strtolower( $ascii ) : '';
		}
		return Punycode::host( $host );
	}
}
