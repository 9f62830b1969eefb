<?php
/**
 * A request read without trusting any of it, and the bounds of what is asked.
 */

namespace QueueManager\Test;

use QueueManager\CheckQuery;
use QueueManager\Cookies;
use QueueManager\PageRequest;
use QueueManager\QueueServer;
use QueueManager\Token;

foreach ( array(
	array( token(), true ),
	array( token( 'other' ), false ),
	array( token( 'Checkout' ), false ),
	array( token() . '.x', false ),
	array( token() . '=', false ),
	array( token() . "\n", false ),
	array( '.' . token(), false ),
	array( 'e30.x', false ),
	array( 'W10.x', false ),
	array( 'bnVsbA.x', false ),
	array( '!!!.x', false ),
	array( rtrim( strtr( base64_encode( '{"r":"checkout","n":1,"n":2}' ), '+/', '-_' ), '=' ) . '.x', false ),
	array( rtrim( strtr( base64_encode( '{"r":"checkout","x":{"r":1,"y":":{"}}' ), '+/', '-_' ), '=' ) . '.x', true ),
	array( '', false ),
	array( 'x', false ),
	array( '.', false ),
	array( token( 'checkout', 1, str_repeat( 'x', 940 ) ), true ),
	array( token( 'checkout', 1, str_repeat( 'x', 1024 ) ), false ),
	array( rtrim( base64_encode( '{"r":["checkout"]}' ), '=' ) . '.x', false ),
	array( rtrim( base64_encode( str_repeat( '[', 99 ) . str_repeat( ']', 99 ) ), '=' ) . '.x', false ),
) as $index => list( $text, $is_one ) ) {
	check( "token $index", $is_one, static fn() => null !== Token::parse( $text, 'checkout' ) );
}

$old = token( 'checkout', 5 );
$new = token( 'checkout', 9 );
foreach ( array( array( $old, $new ), array( $new, $old ), array( 'junk', $new, token( 'x', 99 ), $old, $new ) ) as $index => $texts ) {
	check(
		"newest first $index",
		array( $new, $old ),
		static fn() => array_map( static fn( $token ) => $token->text, Token::newest_first( $texts, 'checkout' ) )
	);
}
check( 'times that are none', 3, static fn() => count( Token::newest_first( array( token( 'c', '9' ), token( 'c', null ), token( 'c', 1e300 ) ), 'c' ) ) );

foreach ( array(
	array( '', array() ),
	array( 'qm_a=1', array( '1' ) ),
	array( 'x=0;qm_a=1;qm_a=2', array( '1', '2' ) ),
	array( " qm_a = 1 ;\tqm_a\t=\t2", array( '1', '2' ) ),
	array( 'qm_a="1"', array( '1' ) ),
	array( 'qm_a=""1""', array( '"1"' ) ),
	array( 'qm_a="1', array( '"1' ) ),
	array( 'qm_a="', array( '"' ) ),
	array( 'qm_a=a=b', array( 'a=b' ) ),
	array( 'qm_a=', array( '' ) ),
	array( 'qm_a', array() ),
	array( 'QM_A=1; qm.a=2; qm a=3; qm[a=4; qm_ab=5; qms_a=6', array() ),
	array( 'x="a; qm_a=fake; b"', array( 'fake' ) ),
	array( str_repeat( 'a=1;', 512 ) . 'qm_a=1', array() ),
) as list( $header, $expected ) ) {
	check( 'cookies ' . substr( $header, 0, 40 ), $expected, static fn() => Cookies::values( $header, 'qm_a' ) );
}

$site = 'https://shop.example.com';
$tok  = token();
foreach ( array(
	array( '/checkout/', '/checkout/', false, '' ),
	array( "/checkout/?qm_token=$tok", '/checkout/', true, $tok ),
	array( "/checkout/?a=1&qm_token=$tok&b=%2F+c", '/checkout/?a=1&b=%2F+c', true, $tok ),
	array( "/?qm%5Ftoken=$tok&&x", '/?&x', true, $tok ),
	array( '/?qm_token', '/', true, '' ),
	array( '/?qm_token=', '/', true, '' ),
	array( '/?qm_token[]=x&qm.token=y', '/?qm_token[]=x&qm.token=y', false, '' ),
	array( '/?xqm_token=1&qm_tokens=2', '/?xqm_token=1&qm_tokens=2', false, '' ),
	array( '/?qm_token=' . token( 'other' ), '/', true, '' ),
	array( "/?qm_token=$tok&qm_token=junk&qm_token=" . token( 'checkout', 9 ), '/', true, $tok ),
	array( "/?qm_token=$tok;%20Domain=evil.example", '/', true, '' ),
	array( "/?qm_token=$tok%0d%0aX:y", '/', true, '' ),
	array( '//evil.example/x', '//evil.example/x', false, '' ),
	array( 'https://evil.example/x?y', '/x?y', false, '' ),
	array( 'http://evil.example', '/', false, '' ),
	array( 'evil.example/x', '/evil.example/x', false, '' ),
	array( '', '/', false, '' ),
	array( '*', '/*', false, '' ),
	array( "/a'b\"c<d>\\e f\r\ng", '/a\'b%22c%3Cd%3E%5Ce%20f%0D%0Ag', false, '' ),
	array( '/ก?ข', '/%E0%B8%81?%E0%B8%82', false, '' ),
	array( '/a#b?qm_token=x', '/a', false, '' ),
) as list( $uri, $target, $carried, $arriving ) ) {
	check(
		'target ' . $uri,
		array( $site . $target, $carried, $arriving ),
		static function () use ( $uri ): array {
			$request = request( array( 'REQUEST_URI' => $uri ) );
			return array( $request->address, $request->carried_token, null === $request->arriving ? '' : $request->arriving->text );
		}
	);
}

foreach ( array(
	array( array(), false ),
	array( array( 'REQUEST_METHOD' => 'HEAD' ), true ),
	array( array( 'HTTP_SEC_PURPOSE' => 'prefetch;prerender' ), true ),
	array( array( 'HTTP_PURPOSE' => 'Prefetch' ), true ),
	array( array( 'HTTP_X_MOZ' => 'prefetch' ), true ),
	array( array( 'REQUEST_METHOD' => 'POST' ), false ),
) as list( $server, $expected ) ) {
	check( 'speculative ' . json_encode( $server ), $expected, static fn() => (bool) request( $server )->is_speculative );
}

foreach ( array(
	array( 'O\'Brien "x" \\ y', 'O\'Brien "x" \\ y' ),
	array( str_repeat( 'a', 255 ) . 'ก', str_repeat( 'a', 255 ) . "\xE0" ),
	array( ' x ', 'x' ),
	array( array( 'x' ), '' ),
	array( null, '' ),
) as $index => list( $agent, $expected ) ) {
	check(
		"agent $index",
		bin2hex( $expected ),
		static fn() => bin2hex( ( new PageRequest( array( 'HTTP_USER_AGENT' => $agent ), '', 'a', '' ) )->agent )
	);
}

$long = 'https://shop.example.com/checkout/';
foreach ( array(
	array( '/checkout/', '', false, array( $long ) ),
	array( '/checkout/', '', true, array( $long, '' ) ),
	array( '/?p=7', $long, false, array( 'https://shop.example.com/?p=7', $long ) ),
	array( '/checkout/?' . str_repeat( 'a', 2000 ), '', false, array( $long, null ) ),
	array( '/' . str_repeat( 'a', 2000 ), '', false, array( '' ) ),
	array( '/' . str_repeat( '%', 1000 ), '', false, array( '' ) ),
) as $index => list( $uri, $canonical, $own, $expected ) ) {
	check(
		"addresses $index",
		$expected,
		static fn() => CheckQuery::addresses( request( array( 'REQUEST_URI' => $uri ) ), $canonical, $own )
	);
}

check(
	'the longest check is one the server reads',
	true,
	static function (): bool {
		$room    = str_repeat( 'r', 64 );
		$token   = Token::parse( token( $room, 1, str_repeat( 's', 860 ) ), $room );
		$request = new PageRequest(
			array( 'REQUEST_URI' => '/?' . str_repeat( 'ก', 125 ), 'HTTP_USER_AGENT' => str_repeat( "\xff", 999 ) ),
			'https://shop.example.com',
			$room,
			'2001:db8:1111:2222:3333:4444:5555:6666'
		);
		$address = CheckQuery::addresses( $request, '', false )[0];
		$target  = '/api/v1/check?' . CheckQuery::build( $room, $request, $token, $address );
		return strlen( $token->text ) > 900 && strlen( $address ) > 1000 && strlen( $target ) <= 4096;
	}
);

$queue = new QueueServer( 'https://queue.example.com', 'checkout' );
$own   = 'https://queue.example.com/w/checkout?qm_return=B';
foreach ( array(
	array( '/w/checkout', $own ),
	array( 'https://queue.example.com/w/checkout', $own ),
	array( 'HTTPS://QUEUE.example.com:443/w/checkout', $own ),
	array( '/w/checkout?lang=th', 'https://queue.example.com/w/checkout?lang=th&qm_return=B' ),
	array( '/w/a b', $own ),
	array( 'https://evil.example/w/x', $own ),
	array( '//evil.example/w/x', $own ),
	array( '/\\evil.example/w/x', $own ),
	array( 'https://queue.example.com@evil.example/', $own ),
	array( 'https://queue.example.com.evil.example/', $own ),
	array( 'http://queue.example.com/w/checkout', $own ),
	array( 'javascript:alert(1)', $own ),
	array( "/w/x\r\nSet-Cookie: a=b", $own ),
	array( 'w/checkout', $own ),
	array( '', $own ),
	array( null, $own ),
	array( array( '/w/x' ), $own ),
	array( 7, $own ),
) as list( $named, $expected ) ) {
	check( 'waiting page ' . json_encode( $named ), $expected, static fn() => $queue->waiting_page( $named, 'B' ) );
}
check(
	'a return address that is too long gives up its query, then itself',
	array( 'https://queue.example.com/w/checkout?qm_return=%2Fa', 'https://queue.example.com/w/checkout' ),
	static fn() => array(
		$queue->waiting_page( null, '/a?' . str_repeat( 'b', 4000 ) ),
		$queue->waiting_page( null, '/' . str_repeat( 'b', 4000 ) ),
	)
);

check(
	'no bytes of a visitor make the reader throw',
	true,
	static function (): bool {
		$seed = random_int( 0, PHP_INT_MAX );
		mt_srand( $seed );
		$pieces = array( '%', '%0', '=', ';', '"', '?', '&', '#', 'qm_token', 'qm_checkout', '.', '/', "\0", "\xff", 'ก', token(), '\\', ' ', '[', ',' );
		for ( $i = 0; $i < 5000; $i++ ) {
			$text = '';
			for ( $j = mt_rand( 0, 12 ); $j > 0; $j-- ) {
				$text .= $pieces[ mt_rand( 0, count( $pieces ) - 1 ) ];
			}
			try {
				$request = request( array_fill_keys( array( 'REQUEST_URI', 'HTTP_COOKIE', 'HTTP_USER_AGENT', 'HTTP_SEC_PURPOSE' ), $text ) );
				CheckQuery::addresses( $request, $text, true );
			} catch ( \Throwable $fault ) {
				printf( "seed %d: %s on %s\n", $seed, $fault->getMessage(), bin2hex( $text ) );
				return false;
			}
			if ( preg_match( '/[\x00-\x20\x7f-\xff]|\?(.*&)?qm_token=/', $request->address ) ) {
				printf( "seed %d: %s\n", $seed, $request->address );
				return false;
			}
		}
		return true;
	}
);
