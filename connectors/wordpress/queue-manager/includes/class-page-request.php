<?php
/**
 * The request for a page of this site, read without trusting any of it.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Takes its values from the server variables as the web server set them. Nothing here throws.
 */
final class PageRequest {

	const AGENT_BYTES_MAX = 256;

	/**
	 * The page's address under the configured site, without any qm_token.
	 *
	 * @var string
	 */
	public $address;

	/**
	 * Whether the address carried a qm_token.
	 *
	 * @var bool
	 */
	public $carried_token;

	/**
	 * The token of this room in the address, if any.
	 *
	 * @var Token|null
	 */
	public $arriving;

	/**
	 * The tokens of this room in cookies, newest first.
	 *
	 * @var Token[]
	 */
	public $stored;

	/**
	 * Whether the room's cookie came and cannot be a token of the room.
	 *
	 * @var bool
	 */
	public $has_useless_cookie;

	/**
	 * Whether the browser fetches ahead, or asks for headers only: neither may spend a pass.
	 *
	 * @var bool
	 */
	public $is_speculative;

	/**
	 * Whether a redirect loses nothing.
	 *
	 * @var bool
	 */
	public $is_get;

	/**
	 * The browser's name for itself, cut as the queue cuts it.
	 *
	 * @var string
	 */
	public $agent;

	/**
	 * The address of the visitor.
	 *
	 * @var string
	 */
	public $ip;

	/**
	 * Reads a request.
	 *
	 * @param array  $server The server variables, without added slashes.
	 * @param string $site   The origin of this site as configured.
	 * @param string $room   The room's id.
	 * @param string $ip     The visitor's address.
	 */
	public function __construct( array $server, string $site, string $room, string $ip ) {
		$method  = self::text( $server, 'REQUEST_METHOD' );
		$purpose = self::text( $server, 'HTTP_SEC_PURPOSE' ) . ' ' . self::text( $server, 'HTTP_PURPOSE' )
			. ' ' . self::text( $server, 'HTTP_X_MOZ' );

		list( $target, $tokens ) = self::without_token( self::target( $server ) );

		$arriving = Token::newest_first( $tokens, $room );
		$cookies  = Cookies::values( self::text( $server, 'HTTP_COOKIE' ), 'qm_' . $room );

		$this->address        = $site . $target;
		$this->carried_token  = array() !== $tokens;
		$this->arriving       = isset( $arriving[0] ) ? $arriving[0] : null;
		$this->stored         = Token::newest_first( $cookies, $room );
		$this->is_get         = 'GET' === $method || 'HEAD' === $method;
		$this->is_speculative = 'HEAD' === $method || preg_match( '/prefetch|prerender/i', $purpose );

		$this->has_useless_cookie = array() === $this->stored && array() !== array_filter( $cookies, 'strlen' );

		$this->agent = substr( trim( self::text( $server, 'HTTP_USER_AGENT' ) ), 0, self::AGENT_BYTES_MAX );
		$this->ip    = $ip;
	}

	/**
	 * Path and query of the request, safe in a header and beginning with a slash. An absolute
	 * target names a host of the visitor's choice, which is dropped.
	 *
	 * @param array $server The server variables.
	 */
	private static function target( array $server ): string {
		$target = self::text( $server, 'REQUEST_URI' );
		$target = (string) preg_replace( '/\Ahttps?:\/\/[^\/?]*/i', '', explode( '#', $target, 2 )[0] );
		$target = '' === $target || '/' !== $target[0] ? '/' . $target : $target;
		return WebUrl::encode( $target, '"<>\\' );
	}

	/**
	 * Takes every qm_token off the query; the rest stays as it is, byte for byte.
	 *
	 * @param string $target Path and query.
	 * @return array{0: string, 1: string[]}
	 */
	private static function without_token( string $target ): array {
		$parts  = explode( '?', $target, 2 );
		$tokens = array();
		$kept   = array();
		foreach ( isset( $parts[1] ) ? explode( '&', $parts[1] ) : array() as $pair ) {
			$halves = explode( '=', $pair, 2 );
			if ( 'qm_token' === urldecode( $halves[0] ) ) {
				$tokens[] = isset( $halves[1] ) ? urldecode( $halves[1] ) : '';
			} else {
				$kept[] = $pair;
			}
		}
		if ( array() === $tokens ) {
			return array( $target, array() );
		}
		return array( $parts[0] . ( array() === $kept ? '' : '?' . implode( '&', $kept ) ), $tokens );
	}

	/**
	 * A server variable as text.
	 *
	 * @param array  $server The server variables.
	 * @param string $key    The variable's name.
	 */
	private static function text( array $server, string $key ): string {
		return isset( $server[ $key ] ) && is_string( $server[ $key ] ) ? $server[ $key ] : '';
	}
}
