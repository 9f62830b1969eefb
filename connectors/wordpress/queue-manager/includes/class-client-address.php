<?php
/**
 * Whose address this request comes from, behind proxies or not.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Applies the setting QM_TRUSTED_PROXY. Whatever cannot be used leaves the connection's address.
 */
final class ClientAddress {

	/** What Cloudflare puts in place of a visitor's address for requests of its own. */
	const PLACEHOLDER = '2a06:98c0:3600::103';

	const HOPS_MAX = 32;

	/**
	 * The address to vouch for.
	 *
	 * @param mixed $setting The value of QM_TRUSTED_PROXY; null when it is not defined.
	 * @param array $server  The server variables, without added slashes.
	 * @return string The address; '' when the connection itself has none.
	 */
	public static function read( $setting, array $server ): string {
		$connection = Address::parse( self::variable( $server, 'REMOTE_ADDR' ) );
		$trusted    = self::trusted( $setting, $server );
		return '' === $trusted ? $connection : $trusted;
	}

	/**
	 * Whether a proxy seems to stand in front although none is configured.
	 *
	 * @param mixed $setting The value of QM_TRUSTED_PROXY; null when it is not defined.
	 * @param array $server  The server variables.
	 */
	public static function proxy_unconfigured( $setting, array $server ): bool {
		return null === $setting && '' !== self::variable( $server, 'HTTP_X_FORWARDED_FOR' );
	}

	/**
	 * The address the trusted proxy names, or ''.
	 *
	 * @param mixed $setting The value of QM_TRUSTED_PROXY.
	 * @param array $server  The server variables.
	 */
	private static function trusted( $setting, array $server ): string {
		if ( true === $setting ) {
			foreach ( array( 'CF-Connecting-IP', 'True-Client-IP', 'X-Real-IP' ) as $name ) {
				$address = self::single( $name, $server );
				if ( '' !== $address ) {
					return $address;
				}
			}
			return self::hop( 1, $server );
		}
		if ( is_int( $setting ) ) {
			return self::hop( $setting, $server );
		}
		if ( ! is_string( $setting ) ) {
			return '';
		}
		$setting = trim( $setting );
		if ( preg_match( '/\A[0-9]{1,2}\z/', $setting ) ) {
			return self::hop( (int) $setting, $server );
		}
		return preg_match( '/\A[A-Za-z0-9-]+\z/', $setting ) ? self::single( $setting, $server ) : '';
	}

	/**
	 * The address in a header that holds exactly one; a list is none.
	 *
	 * @param string $name   The header's name.
	 * @param array  $server The server variables.
	 */
	private static function single( string $name, array $server ): string {
		$key     = 'HTTP_' . strtoupper( str_replace( '-', '_', $name ) );
		$address = Address::parse_forwarded( self::variable( $server, $key ) );
		if ( 'HTTP_CF_CONNECTING_IP' !== $key ) {
			return $address;
		}
		if ( self::PLACEHOLDER === $address ) {
			return '';
		}
		if ( preg_match( '/\A(?:24[0-9]|25[0-5])\./', $address ) ) {
			// A stand-in for an IPv6 address, which the proxy names beside it.
			$real = Address::parse( self::variable( $server, 'HTTP_CF_CONNECTING_IPV6' ) );
			return false === strpos( $real, ':' ) ? $address : $real;
		}
		return $address;
	}

	/**
	 * The entry of X-Forwarded-For counted from the right, where the visitor cannot write.
	 *
	 * @param int   $hops   How many proxies stand in front.
	 * @param array $server The server variables.
	 */
	private static function hop( int $hops, array $server ): string {
		$list    = self::variable( $server, 'HTTP_X_FORWARDED_FOR' );
		$entries = '' === $list ? array() : explode( ',', $list );
		if ( $hops < 1 || $hops > self::HOPS_MAX || $hops > count( $entries ) ) {
			return '';
		}
		return Address::parse_forwarded( $entries[ count( $entries ) - $hops ] );
	}

	/**
	 * A server variable as text; '' when it is absent or no text.
	 *
	 * @param array  $server The server variables.
	 * @param string $key    The variable's name.
	 */
	private static function variable( array $server, string $key ): string {
		return isset( $server[ $key ] ) && is_string( $server[ $key ] ) ? $server[ $key ] : '';
	}
}
