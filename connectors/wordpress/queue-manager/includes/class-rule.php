<?php
/**
 * One path rule: what may be written, and whether it covers a page.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * The rule language of the queue server, bound for bound.
 */
final class Rule {

	const CHARS_MAX     = 300;
	const WILDCARDS_MAX = 10;

	/**
	 * The rule without a leading exclamation mark.
	 *
	 * @var string
	 */
	public $pattern;

	/**
	 * Whether it is an exception.
	 *
	 * @var bool
	 */
	public $is_exception;

	/**
	 * The origin a full rule pins; '' for every other rule.
	 *
	 * @var string
	 */
	private $origin;

	/**
	 * Whether the query takes part in the comparison: 1 or 0, the index into a form.
	 *
	 * @var int
	 */
	private $part;

	/**
	 * What is between the stars, once as typed and once decoded.
	 *
	 * @var array<int, string[]>
	 */
	private $globs;

	/**
	 * Reads a rule.
	 *
	 * @param string $text The rule as written.
	 * @throws InvalidRule When it is out of bounds; the code says how.
	 */
	public function __construct( string $text ) {
		if ( strlen( (string) preg_replace( '/[\x80-\xBF]/', '', $text ) ) > self::CHARS_MAX ) {
			throw new InvalidRule( 'too_long' );
		}
		$this->is_exception = '' !== $text && '!' === $text[0];
		$this->pattern      = $this->is_exception ? substr( $text, 1 ) : $text;
		if ( substr_count( $this->pattern, '*' ) > self::WILDCARDS_MAX ) {
			throw new InvalidRule( 'too_many_wildcards' );
		}
		if ( preg_match( '/[\x00-\x1F\x7F]|\xC2[\x80-\x9F]/', $this->pattern ) ) {
			throw new InvalidRule( 'control_character' );
		}
		list( $this->origin, $path ) = self::split( $this->pattern );
		if ( false !== strpos( $this->pattern, '#' ) ) {
			throw new InvalidRule( 'fragment' );
		}
		$typed       = self::encode( $path );
		$this->part  = false === strpos( $path, '?' ) ? 0 : 1;
		$this->globs = array();
		foreach ( array_unique( array( $typed, UrlForms::decode( $typed ) ) ) as $glob ) {
			$this->globs[] = explode( '*', UrlForms::lower( $glob ) );
		}
	}

	/**
	 * Whether the rule matches the page: an inclusion needs one form, an exception every one.
	 *
	 * @param WebUrl   $url   The page's address.
	 * @param UrlForms $forms Its forms.
	 */
	public function covers( WebUrl $url, UrlForms $forms ): bool {
		if ( '' !== $this->origin && $this->origin !== $url->origin ) {
			return false;
		}
		foreach ( $this->is_exception ? $forms->plain : $forms->generous as $form ) {
			if ( $this->matches( $form[ $this->part ] ) !== $this->is_exception ) {
				return ! $this->is_exception;
			}
		}
		return $this->is_exception;
	}

	/**
	 * Whether the rule is the whole of a text.
	 *
	 * @param string $text A form's text.
	 */
	private function matches( string $text ): bool {
		foreach ( $this->globs as $parts ) {
			if ( self::glob( $parts, $text ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Matches what stands between stars. The first and the last part are anchored; each one between
	 * is searched once, and leftmost is enough, since a star takes any run.
	 *
	 * @param string[] $parts The parts.
	 * @param string   $text  The text.
	 */
	private static function glob( array $parts, string $text ): bool {
		$head = (string) array_shift( $parts );
		if ( array() === $parts ) {
			return $head === $text;
		}
		$tail = (string) array_pop( $parts );
		$at   = strlen( $head );
		$end  = strlen( $text ) - strlen( $tail );
		if ( $at > $end || 0 !== strncmp( $text, $head, $at ) || substr( $text, $end ) !== $tail ) {
			return false;
		}
		foreach ( $parts as $part ) {
			$found = '' === $part ? $at : strpos( $text, $part, $at );
			if ( false === $found || $found + strlen( $part ) > $end ) {
				return false;
			}
			$at = $found + strlen( $part );
		}
		return true;
	}

	/**
	 * The origin a full rule pins, and the path that follows.
	 *
	 * @param string $pattern The rule without an exclamation mark.
	 * @return array{0: string, 1: string}
	 * @throws InvalidRule When it starts in no allowed way.
	 */
	private static function split( string $pattern ): array {
		if ( '' !== $pattern && ( '/' === $pattern[0] || '*' === $pattern[0] ) ) {
			return array( '', $pattern );
		}
		if ( ! preg_match( '/\A(https?):\/\/([^\/]*)(\/.*)?\z/is', $pattern, $parts ) ) {
			throw new InvalidRule( 'start' );
		}
		if ( 'https' !== strtolower( $parts[1] ) ) {
			throw new InvalidRule( 'plain_http' );
		}
		if ( ! isset( $parts[3] ) ) {
			throw new InvalidRule( 'no_path' );
		}
		$origin = WebUrl::parse_origin( 'https://' . $parts[2] );
		if ( '' === $origin ) {
			throw new InvalidRule( 'host' );
		}
		return array( $origin, $parts[3] );
	}

	/**
	 * Encodes path and query as a browser encodes what is typed into its address bar.
	 *
	 * @param string $text Path and query.
	 */
	private static function encode( string $text ): string {
		$parts = explode( '?', $text, 2 );
		$path  = WebUrl::encode( strtr( $parts[0], '\\', '/' ), '"<>`{}' );
		return isset( $parts[1] ) ? $path . '?' . WebUrl::encode( $parts[1], '"<>\'' ) : $path;
	}
}
