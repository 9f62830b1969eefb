<?php
/**
 * The Cookie header as the browser sent it.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Reads the header itself: PHP's own table decodes values, renames `qm.a` to `qm_a` and keeps one of
 * several cookies of the same name, whichever comes first.
 */
final class Cookies {

	const PAIRS_MAX = 512;

	/**
	 * The values of one cookie, each without one pair of surrounding quotes.
	 *
	 * @param string $header The Cookie header.
	 * @param string $name   The cookie's name.
	 * @return string[]
	 */
	public static function values( string $header, string $name ): array {
		$values = array();
		foreach ( array_slice( explode( ';', $header ), 0, self::PAIRS_MAX ) as $pair ) {
			$parts = explode( '=', $pair, 2 );
			if ( 2 === count( $parts ) && trim( $parts[0], " \t" ) === $name ) {
				$value    = trim( $parts[1], " \t" );
				$values[] = preg_match( '/\A"(.*)"\z/s', $value, $found ) ? $found[1] : $value;
			}
		}
		return $values;
	}
}
