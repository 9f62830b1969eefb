<?php
/**
 * The situations that all connectors share, played to the door.
 */

namespace QueueManager\Test;

use QueueManager\Address;
use QueueManager\CheckAnswer;
use QueueManager\CheckQuery;
use QueueManager\Door;
use QueueManager\PageRequest;
use QueueManager\QueueServer;

$table = json_decode( file_get_contents( __DIR__ . '/../../../behaviour.json' ), true );

/** Fills the placeholders of a row. */
$fill = static function ( $value ) use ( &$fill, $table ) {
	if ( is_array( $value ) ) {
		return array_map( $fill, $value );
	}
	return ! is_string( $value ) ? $value : preg_replace_callback(
		'/\$\{(?:([^}]+)\*(\d+)|(\w+))\}/u',
		static fn( array $found ): string => isset( $found[3] ) ? $table['tokens'][ $found[3] ] : str_repeat( $found[1], (int) $found[2] ),
		$value
	);
};

foreach ( $table['rows'] as $row ) {
	if ( isset( $row['hosts'] ) && ! in_array( 'php', $row['hosts'], true ) ) {
		continue;
	}
	$row      = $fill( $row );
	$settings = ( $row['settings'] ?? array() ) + $table['settings'];
	$request  = ( $row['request'] ?? array() ) + $table['request'];
	$expect   = $row['expect'];
	$defaults = array(
		'location' => 'waiting' === $expect['outcome'] ? $settings['server'] . '/w/' . $settings['room'] : '',
		'returnTo' => '',
		'failover' => '',
		'cookie'   => '',
	);
	$expect  += $defaults;
	unset( $expect['url'] );
	check(
		'behaviour: ' . $row['name'],
		array( $expect['outcome'], $expect['location'], $expect['returnTo'], $expect['failover'], $expect['cookie'], array() ),
		static function () use ( $settings, $request, $row ): array {
			preg_match( '/\A(https?:\/\/[^\/?#]*)(.*)\z/s', $request['url'], $url );
			$server = array( 'REQUEST_METHOD' => $request['method'], 'REQUEST_URI' => $url[2] );
			foreach ( $request['headers'] ?? array() as $name => $value ) {
				$server[ 'HTTP_' . strtoupper( strtr( $name, '-', '_' ) ) ] = is_array( $value ) ? implode( 'Cookie' === $name ? '; ' : ', ', $value ) : $value;
			}
			$page   = new PageRequest( $server, $url[1], $settings['room'], Address::parse( $request['address'] ) );
			$faults = array();
			$asked  = 0;
			$ask    = static function ( string $query ) use ( &$faults, &$asked, $row ): CheckAnswer {
				$step = $row['server'][ $asked++ ] ?? null;
				if ( null === $step ) {
					$faults[] = 'one check too many';
					return new CheckAnswer( CheckAnswer::FAILURE, 'unreachable' );
				}
				parse_str( $query, $sent );
				foreach ( $step['sent'] ?? array() as $name => $value ) {
					if ( 'key' !== $name && ( $sent[ $name ] ?? null ) !== $value ) {
						$faults[] = array( $name, $sent[ $name ] ?? null, $value );
					}
				}
				$answer = $step['answer'];
				if ( isset( $answer['failure'] ) ) {
					return new CheckAnswer( CheckAnswer::FAILURE, $answer['failure'] );
				}
				$body = $answer['body'] ?? '';
				return CheckAnswer::read( $answer['status'], is_string( $body ) ? $body : json_encode( $body ) );
			};
			$door    = new Door( new QueueServer( $settings['server'], $settings['room'] ), $ask, static fn() => 0.0 );
			$outcome = $door->decide( $page, CheckQuery::addresses( $page, '', false ) );
			if ( count( $row['server'] ?? array() ) !== $asked ) {
				$faults[] = "$asked checks";
			}
			$parts  = explode( 'qm_return=', $outcome->location, 2 );
			$target = rtrim( $parts[0], '?&' );
			$is_own = 0 === strpos( $outcome->location, $settings['server'] . '/' );
			$kind   = array( 'serve' => 'forward', 'redirect' => $is_own ? 'waiting' : 'strip', 'turn-away' => 'refuse' )[ $outcome->kind ];
			$back   = isset( $parts[1] ) && $is_own ? rawurldecode( $parts[1] ) : ( $is_own ? null : '' );
			$cookie = null === $outcome->cookie ? '' : ( '' === $outcome->cookie ? 'cleared' : array( 'set' => $outcome->cookie ) );
			return array( $kind, $is_own ? $target : $outcome->location, $back, $outcome->failover, $cookie, $faults );
		}
	);
}
