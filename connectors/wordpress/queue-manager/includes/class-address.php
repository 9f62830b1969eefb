<?php
/**
 * An IP address as text: what may be vouched for, and what proxies write into their headers.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Reads addresses. Everything here answers '' for what is no address; nothing throws.
 */
final class Address {

	/**
	 * Reads a textual IPv4 or IPv6 address and nothing else; blanks around it are trimmed. An
	 * IPv4-mapped IPv6 address is the IPv4 address, in every spelling.
	 *
	 * @param mixed $text What should be an address.
	 * @return string The address, or ''.
	 */
	public static function parse( $text ): string {
		if ( ! is_string( $text ) ) {
			return '';
		}
		$text = trim( $text, " \t" );
		if ( false === filter_var( $text, FILTER_VALIDATE_IP ) ) {
			return '';
		}
		$bytes = (string) inet_pton( $text );
		if ( 16 === strlen( $bytes ) && str_repeat( "\0", 10 ) . "\xff\xff" === substr( $bytes, 0, 12 ) ) {
			$bytes = substr( $bytes, 12 );
		}
		return (string) inet_ntop( $bytes );
	}

	/**
	 * Reads one entry of a forwarding header, where proxies also write ports and brackets.
	 *
	 * @param string $text The entry.
	 * @return string The address, or ''.
	 */
	public static function parse_forwarded( string $text ): string {
		$text = trim( $text, " \t" );
		if ( preg_match( '/\A\[([0-9a-fA-F:.]+)\](?::[0-9]{1,5})?\z/', $text, $found ) ) {
			return false === strpos( $found[1], ':' ) ? '' : self::parse( $found[1] );
		}
		if ( preg_match( '/\A([0-9.]+):[0-9]{1,5}\z/', $text, $found ) ) {
			return self::parse( $found[1] );
		}
		return self::parse( $text );
	}
}
