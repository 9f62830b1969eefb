<?php
/**
 * Visitors' tokens and requests, made up for the tests.
 */

namespace QueueManager\Test;

use QueueManager\PageRequest;

/**
 * A text with the form of a token.
 *
 * @param string $room   The room.
 * @param mixed  $issued Its time of issue.
 * @param string $tail   The signature.
 */
function token( string $room = 'checkout', $issued = 1700000000000, string $tail = 'sig' ): string {
	$payload = json_encode( array( 'r' => $room, 'n' => 42, 'g' => 1, 'iat' => $issued ) );
	return rtrim( strtr( base64_encode( $payload ), '+/', '-_' ), '=' ) . '.' . $tail;
}

/**
 * A request.
 *
 * @param array $server What differs from a plain one.
 */
function request( array $server = array() ): PageRequest {
	$server += array(
		'REQUEST_METHOD'  => 'GET',
		'REQUEST_URI'     => '/checkout/',
		'HTTP_USER_AGENT' => 'Mozilla/5.0',
	);
	return new PageRequest( $server, 'https://shop.example.com', 'checkout', '203.0.113.7' );
}
