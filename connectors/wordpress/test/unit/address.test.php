<?php
/**
 * Whose address is vouched for.
 */

namespace QueueManager\Test;

use QueueManager\Address;
use QueueManager\ClientAddress;

foreach ( array(
	array( '203.0.113.7', '203.0.113.7' ),
	array( " 203.0.113.7\t", '203.0.113.7' ),
	array( '2001:DB8:1:2:0::7', '2001:db8:1:2::7' ),
	array( '::ffff:203.0.113.7', '203.0.113.7' ),
	array( '0:0:0:0:0:FFFF:cb00:7107', '203.0.113.7' ),
	array( '203.0.113.07', '' ),
	array( '203.0.113.7:80', '' ),
	array( '[::1]', '' ),
	array( 'fe80::1%eth0', '' ),
	array( '203.0.113.7, 203.0.113.8', '' ),
	array( "203.0.113.7\n", '' ),
	array( '', '' ),
	array( null, '' ),
	array( array( '203.0.113.7' ), '' ),
) as list( $text, $expected ) ) {
	check( 'address ' . json_encode( $text ), $expected, static fn() => Address::parse( $text ) );
}

foreach ( array(
	array( '203.0.113.7:51234', '203.0.113.7' ),
	array( '[2001:db8:1:2::7]:443', '2001:db8:1:2::7' ),
	array( '[2001:db8:1:2::7]', '2001:db8:1:2::7' ),
	array( '::ffff:203.0.113.7', '203.0.113.7' ),
	array( '"203.0.113.7"', '' ),
	array( 'unknown', '' ),
	array( '_hidden', '' ),
	array( '203.0.113.7%eth0', '' ),
	array( '[203.0.113.7]', '' ),
	array( '203.0.113.7:', '' ),
) as list( $text, $expected ) ) {
	check( 'entry ' . $text, $expected, static fn() => Address::parse_forwarded( $text ) );
}

$all = array(
	'REMOTE_ADDR'            => '10.0.0.5',
	'HTTP_X_FORWARDED_FOR'   => '198.51.100.1, 203.0.113.1, 203.0.113.2',
	'HTTP_CF_CONNECTING_IP'  => '203.0.113.3',
	'HTTP_TRUE_CLIENT_IP'    => '203.0.113.4',
	'HTTP_X_REAL_IP'         => '203.0.113.5',
);
foreach ( array(
	array( null, $all, '10.0.0.5' ),
	array( false, $all, '10.0.0.5' ),
	array( 0, $all, '10.0.0.5' ),
	array( -1, $all, '10.0.0.5' ),
	array( 1, $all, '203.0.113.2' ),
	array( '1', $all, '203.0.113.2' ),
	array( 2, $all, '203.0.113.1' ),
	array( 3, $all, '198.51.100.1' ),
	array( 4, $all, '10.0.0.5' ),
	array( 1.0, $all, '10.0.0.5' ),
	array( array( 1 ), $all, '10.0.0.5' ),
	array( true, $all, '203.0.113.3' ),
	array( true, array( 'HTTP_CF_CONNECTING_IP' => 'x' ) + $all, '203.0.113.4' ),
	array( true, array( 'HTTP_CF_CONNECTING_IP' => 'x', 'HTTP_TRUE_CLIENT_IP' => '' ) + $all, '203.0.113.5' ),
	array( true, array( 'HTTP_X_FORWARDED_FOR' => '203.0.113.9', 'REMOTE_ADDR' => '10.0.0.5' ), '203.0.113.9' ),
	array( true, array( 'REMOTE_ADDR' => '10.0.0.5' ), '10.0.0.5' ),
	array( 'CF-Connecting-IP', $all, '203.0.113.3' ),
	array( 'cf-connecting-ip', $all, '203.0.113.3' ),
	array( 'X-Forwarded-For', $all, '10.0.0.5' ),
	array( 'X-Forwarded-For', array( 'HTTP_X_FORWARDED_FOR' => '203.0.113.9' ) + $all, '203.0.113.9' ),
	array( 'Nope', $all, '10.0.0.5' ),
	array( 'No pe', $all, '10.0.0.5' ),
	array( '', $all, '10.0.0.5' ),
	array( 1, array( 'HTTP_X_FORWARDED_FOR' => '203.0.113.1, nonsense' ) + $all, '10.0.0.5' ),
	array( 1, array( 'HTTP_X_FORWARDED_FOR' => '203.0.113.1, ' ) + $all, '10.0.0.5' ),
	array( 'CF-Connecting-IP', array( 'HTTP_CF_CONNECTING_IP' => '240.1.2.3', 'HTTP_CF_CONNECTING_IPV6' => '2001:db8::1' ) + $all, '2001:db8::1' ),
	array( 'CF-Connecting-IP', array( 'HTTP_CF_CONNECTING_IP' => '255.1.2.3', 'HTTP_CF_CONNECTING_IPV6' => 'x' ) + $all, '255.1.2.3' ),
	array( 'CF-Connecting-IP', array( 'HTTP_CF_CONNECTING_IP' => '2a06:98c0:3600::103' ) + $all, '10.0.0.5' ),
	array( 1, array( 'REMOTE_ADDR' => '::ffff:10.0.0.5' ), '10.0.0.5' ),
	array( null, array(), '' ),
	array( null, array( 'REMOTE_ADDR' => array() ), '' ),
) as $index => list( $setting, $server, $expected ) ) {
	check(
		"client $index " . json_encode( $setting ),
		$expected,
		static fn() => ClientAddress::read( $setting, $server )
	);
}
check( 'a proxy nobody configured', true, static fn() => ClientAddress::proxy_unconfigured( null, $all ) );
check( 'a proxy somebody configured', false, static fn() => ClientAddress::proxy_unconfigured( 0, $all ) );
