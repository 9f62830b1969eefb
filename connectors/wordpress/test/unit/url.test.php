<?php
/**
 * Addresses read as a browser reads them.
 */

namespace QueueManager\Test;

use QueueManager\Punycode;
use QueueManager\WebHost;
use QueueManager\WebUrl;

foreach ( array(
	array( 'HTTPS://a:b@Shop.example.com:443/A/../B?x=1#y', 'https://shop.example.com', '/B', 'x=1' ),
	array( 'https://h.example', 'https://h.example', '/', null ),
	array( 'https://h.example?', 'https://h.example', '/', '' ),
	array( 'https://h.example/a/./b/%2e%2E/c/', 'https://h.example', '/a/c/', null ),
	array( 'https://h.example/..', 'https://h.example', '/', null ),
	array( 'https://h.example/a/..', 'https://h.example', '/', null ),
	array( 'https://h.example/a/.', 'https://h.example', '/a/', null ),
	array( 'https://h.example//a//', 'https://h.example', '//a//', null ),
	array( 'http://h.example:0080/', 'http://h.example', '/', null ),
	array( 'https://h.example:/x', 'https://h.example', '/x', null ),
	array( 'https://h.example/ก "<>`{}?ก "<>\'', 'https://h.example', '/%E0%B8%81%20%22%3C%3E%60%7B%7D', '%E0%B8%81%20%22%3C%3E%27' ),
	array( 'https://[2001:DB8::1]:8443/', 'https://[2001:db8::1]:8443', '/', null ),
	array( 'https://[::ffff:1.2.3.4]/', 'https://[::ffff:102:304]', '/', null ),
	array( 'https://0x7f.1/', 'https://127.0.0.1', '/', null ),
	array( 'https://017700000001/', 'https://127.0.0.1', '/', null ),
	array( 'https://4294967295/', 'https://255.255.255.255', '/', null ),
	array( 'https://bücher.example/', 'https://xn--bcher-kva.example', '/', null ),
	array( 'https://h%2eexample/', 'https://h.example', '/', null ),
) as list( $text, $origin, $path, $query ) ) {
	check(
		$text,
		array( $origin, $path, $query ),
		static function () use ( $text ) {
			$url = WebUrl::parse( $text );
			return null === $url ? null : array( $url->origin, $url->path, $url->query );
		}
	);
}

foreach ( array(
	'', '/x', '//h.example/', 'ftp://h.example/', 'about:blank', 'data:,x', 'https://', 'https://:80/', 'https://h.example:65536/',
	'https://h.example:8a/', 'https://1.2.3.4.5/', 'https://256.1.1.1/', 'https://4294967296/', 'https://a.0x100000000/', 'https://08.1/',
	'https://a b.example/', 'https://a%00b/', 'https://[::1/', 'https://[1.2.3.4]/', 'https://a|b/', "https://\xff\xfe/",
	'https://h.example/' . str_repeat( 'a', 4079 ),
) as $text ) {
	check( 'no page: ' . substr( $text, 0, 30 ), null, static fn() => WebUrl::parse( $text ) );
}

foreach ( array(
	array( 'https://shop.example.com/', 'https://shop.example.com' ),
	array( 'HTTPS://Shop.Example.com:443', 'https://shop.example.com' ),
	array( 'http://127.0.0.1:8080', 'http://127.0.0.1:8080' ),
	array( 'https://shop.example.com//', '' ),
	array( 'https://shop.example.com/x', '' ),
	array( 'https://shop.example.com?x', '' ),
	array( 'https://u@shop.example.com', '' ),
	array( 'https:shop.example.com', '' ),
	array( 'shop.example.com', '' ),
	array( ' https://shop.example.com', '' ),
) as list( $text, $origin ) ) {
	check( 'origin ' . $text, $origin, static fn() => WebUrl::parse_origin( $text ) );
}

foreach ( array(
	array( 'bücher.example', 'xn--bcher-kva.example' ),
	array( 'BÜCHER。example', 'xn--bcher-kva.example' ),
	array( 'ตั๋ว.example', 'xn--m3c0b3a1h.example' ),
	array( 'ｓｈｏｐ．example', 'shop.example' ),
	array( 'é', 'xn--9ca' ),
	array( "\xff", '' ),
) as list( $host, $expected ) ) {
	check( 'punycode ' . $host, $expected, static fn() => Punycode::host( $host ) );
}
check( 'an empty host', '', static fn() => WebHost::parse( '' ) );
