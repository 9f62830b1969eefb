<?php
/**
 * The visitor's token, as far as a site may look at it: its form, its room and its age.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * A text that can be a token of a room. Whether it is one, only the queue server can tell.
 */
final class Token {

	const BYTES_MAX = 1024;

	/**
	 * The text, safe in a URL, a header and a cookie without encoding.
	 *
	 * @var string
	 */
	public $text;

	/**
	 * When it says it was issued, in milliseconds; 0 when it does not say.
	 *
	 * @var float
	 */
	public $issued_at;

	/**
	 * Use parse().
	 *
	 * @param string $text      The text.
	 * @param float  $issued_at When it says it was issued.
	 */
	private function __construct( string $text, float $issued_at ) {
		$this->text      = $text;
		$this->issued_at = $issued_at;
	}

	/**
	 * Reads what may be a token of the room.
	 *
	 * @param string $text The text, from a cookie or an address.
	 * @param string $room The room's id.
	 * @return self|null Null for anything else, another room's token included.
	 */
	public static function parse( string $text, string $room ): ?self {
		if ( strlen( $text ) > self::BYTES_MAX || ! preg_match( '/\A[\w-]+\.[\w-]+\z/', $text ) ) {
			return null;
		}
		$payload = base64_decode( strtr( strstr( $text, '.', true ), '-_', '+/' ), true );
		$claims  = is_string( $payload ) ? json_decode( $payload, true, 4 ) : null;
		if ( ! is_array( $claims ) || ! isset( $claims['r'] ) || $room !== $claims['r'] ) {
			return null;
		}
		if ( self::count_members( $payload ) !== count( $claims ) ) {
			return null; // A repeated member, which every reader understands in its own way.
		}
		$issued_at = isset( $claims['iat'] ) && is_int( $claims['iat'] ) ? (float) $claims['iat'] : 0.0;
		return new self( $text, $issued_at );
	}

	/**
	 * How many members the outermost object of a JSON text has, repeated ones counted.
	 *
	 * @param string $json A valid JSON text.
	 */
	private static function count_members( string $json ): int {
		$count = 0;
		$depth = 0;
		preg_match_all( '/"(?:[^"\\\\]|\\\\.)*"|[{}\[\]:]/s', $json, $found );
		foreach ( $found[0] as $mark ) {
			$depth += ( '{' === $mark || '[' === $mark ) - ( '}' === $mark || ']' === $mark );
			$count += (int) ( ':' === $mark && 1 === $depth );
		}
		return $count;
	}

	/**
	 * The tokens of the room among the texts, newest first, each once, so that the order in which
	 * a browser sends its cookies decides nothing.
	 *
	 * @param string[] $texts The texts.
	 * @param string   $room  The room's id.
	 * @return self[]
	 */
	public static function newest_first( array $texts, string $room ): array {
		$tokens = array();
		foreach ( $texts as $text ) {
			$token = self::parse( $text, $room );
			if ( null !== $token ) {
				$tokens[ $text ] = $token;
			}
		}
		usort(
			$tokens,
			static function ( self $a, self $b ): int {
				return array( $b->issued_at, $b->text ) <=> array( $a->issued_at, $a->text );
			}
		);
		return $tokens;
	}
}
