<?php
/**
 * Names of other scripts in ASCII, for PHP without the intl extension.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * The encoder of RFC 3492, with the mappings that matter in typed host names.
 */
final class Punycode {

	/**
	 * Encodes a host name.
	 *
	 * @param string $host The name in UTF-8.
	 * @return string '' when it is not UTF-8.
	 */
	public static function host( string $host ): string {
		$codes = self::code_points( $host );
		if ( array() === $codes ) {
			return '';
		}
		$labels = array( array() );
		foreach ( $codes as $code ) {
			if ( in_array( $code, array( 0x2E, 0x3002, 0xFF0E, 0xFF61 ), true ) ) {
				$labels[] = array();
				continue;
			}
			// Full-width forms of ASCII.
			$code = $code >= 0xFF01 && $code <= 0xFF5E ? $code - 0xFEE0 : $code;

			$labels[ count( $labels ) - 1 ][] = $code >= 0x41 && $code <= 0x5A ? $code + 32 : $code;
		}
		return implode( '.', array_map( array( self::class, 'label' ), $labels ) );
	}

	/**
	 * The code points of a text, lower-cased as far as PHP can here.
	 *
	 * @param string $text UTF-8.
	 * @return int[] Empty when it is not UTF-8.
	 */
	private static function code_points( string $text ): array {
		if ( ! preg_match( '//u', $text ) ) {
			return array();
		}
		if ( function_exists( 'mb_strtolower' ) ) {
			$text = mb_strtolower( $text, 'UTF-8' );
		}
		preg_match_all( '/./us', $text, $found );
		return array_map(
			static function ( string $character ): int {
				$bytes = array_values( (array) unpack( 'C*', $character ) );
				$code  = $bytes[0];
				if ( $code >= 0x80 ) {
					$code &= 0x7F >> count( $bytes );
				}
				foreach ( array_slice( $bytes, 1 ) as $byte ) {
					$code = ( $code << 6 ) | ( $byte & 0x3F );
				}
				return $code;
			},
			$found[0]
		);
	}

	/**
	 * Encodes one label.
	 *
	 * @param int[] $codes Its code points.
	 */
	private static function label( array $codes ): string {
		$basic = '';
		foreach ( $codes as $code ) {
			$basic .= $code < 0x80 ? chr( $code ) : '';
		}
		if ( strlen( $basic ) === count( $codes ) ) {
			return $basic;
		}
		$out     = '' === $basic ? '' : $basic . '-';
		$done    = strlen( $basic );
		$handled = $done;
		$limit   = 0x80;
		$delta   = 0;
		$bias    = 72;
		while ( $handled < count( $codes ) ) {
			$above  = array_filter(
				$codes,
				static function ( int $code ) use ( $limit ): bool {
					return $code >= $limit;
				}
			);
			$next   = min( $above );
			$delta += ( $next - $limit ) * ( $handled + 1 );
			$limit  = $next;
			foreach ( $codes as $code ) {
				if ( $code < $limit ) {
					++$delta;
				}
				if ( $code === $limit ) {
					$out  .= self::number( $delta, $bias );
					$bias  = self::adapt( $delta, $handled + 1, $handled === $done );
					$delta = 0;
					++$handled;
				}
			}
			++$delta;
			++$limit;
		}
		return 'xn--' . $out;
	}

	/**
	 * A number in the variable-length form.
	 *
	 * @param int $number The number.
	 * @param int $bias   The bias.
	 */
	private static function number( int $number, int $bias ): string {
		$digits = 'abcdefghijklmnopqrstuvwxyz0123456789';
		$out    = '';
		for ( $base = 36; ; $base += 36 ) {
			$threshold = max( 1, min( 26, $base - $bias ) );
			if ( $number < $threshold ) {
				return $out . $digits[ $number ];
			}
			$out   .= $digits[ $threshold + ( $number - $threshold ) % ( 36 - $threshold ) ];
			$number = intdiv( $number - $threshold, 36 - $threshold );
		}
	}

	/**
	 * The next bias.
	 *
	 * @param int  $delta    The delta just written.
	 * @param int  $points   How many code points are handled.
	 * @param bool $is_first Whether it was the first.
	 */
	private static function adapt( int $delta, int $points, bool $is_first ): int {
		$delta  = intdiv( $delta, $is_first ? 700 : 2 );
		$delta += intdiv( $delta, $points );
		$rounds = 0;
		while ( $delta > 455 ) {
			$delta   = intdiv( $delta, 35 );
			$rounds += 36;
		}
		return $rounds + intdiv( 36 * $delta, $delta + 38 );
	}
}
