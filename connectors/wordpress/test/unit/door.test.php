<?php
/**
 * The door's decisions: one row a situation, the queue server played by a list of answers.
 */

namespace QueueManager\Test;

use QueueManager\CheckAnswer;
use QueueManager\Door;
use QueueManager\QueueServer;

/** A scripted queue server with a clock. */
final class Script {
	/** @var array<string> */
	public array $asked = array();
	public float $now   = 100.0;
	private array $answers;
	private float $each;

	public function __construct( array $answers, float $each = 0.01 ) {
		$this->answers = $answers;
		$this->each    = $each;
	}

	public function ask( string $query, float $seconds ): CheckAnswer {
		parse_str( $query, $members );
		$this->asked[] = isset( $members['token'] ) ? $members['token'] : '-';
		$this->now    += min( $this->each, $seconds );
		$answer        = array_shift( $this->answers );
		return is_array( $answer )
			? CheckAnswer::read( $answer[0], is_string( $answer[1] ) ? $answer[1] : json_encode( $answer[1] ) )
			: new CheckAnswer( CheckAnswer::FAILURE, (string) $answer );
	}
}

$pass  = static fn( string $reason = 'session' ): array => array( 200, array( 'action' => 'pass', 'reason' => $reason ) );
$queue = static fn( string $reason, bool $clear = false ): array => array(
	200,
	array( 'action' => 'queue', 'reason' => $reason, 'waitingRoomUrl' => '/w/checkout', 'clearToken' => $clear ),
);
$page  = 'https://shop.example.com/checkout/';
$wait  = 'https://queue.example.com/w/checkout?qm_return=' . rawurlencode( $page );
$a     = token( 'checkout', 1, 'a' );
$b     = token( 'checkout', 2, 'b' );
$other = token( 'other', 3, 'c' );

// name, URI suffix, cookies, method, answers => kind, location, cookie, failover, tokens asked, protected
$rows = array(
	array( 'no token', '', array(), 'GET', array( $queue( 'no_token' ) ), 'redirect', $wait, null, '', array( '-' ), true ),
	array( 'a session', '', array( $a ), 'GET', array( $pass() ), 'serve', '', null, '', array( $a ), true ),
	array( 'bypass', '', array(), 'GET', array( $pass( 'bypass' ) ), 'serve', '', null, '', array( '-' ), true ),
	array( 'no such room', '', array(), 'GET', array( $pass( 'no_room' ) ), 'serve', '', null, '', array( '-' ), true ),
	array( 'out of scope', '', array(), 'GET', array( $pass( 'out_of_scope' ) ), 'serve', '', null, '', array( '-' ), false ),
	array( 'a form is judged too', '', array(), 'POST', array( $queue( 'no_token' ) ), 'redirect', $wait, null, '', array( '-' ), true ),
	array( 'a dead token is forgotten', '', array( $a ), 'GET', array( $queue( 'session_expired', true ) ), 'redirect', $wait, '', '', array( $a ), true ),
	array( 'a waiting token is kept', '', array( $a ), 'GET', array( $queue( 'waiting' ) ), 'redirect', $wait, null, '', array( $a ), true ),
	array( 'clearToken with nothing sent', '', array(), 'GET', array( $queue( 'no_token', true ) ), 'redirect', $wait, null, '', array( '-' ), true ),
	array( 'a useless cookie goes', '', array( 'junk' ), 'GET', array( $queue( 'no_token' ) ), 'redirect', $wait, '', '', array( '-' ), true ),
	array( 'a useless cookie, busy', '', array( 'junk' ), 'GET', array( array( 429, '' ) ), 'redirect', $wait, null, '', array( '-' ), true ),
	array( 'a pass arrives', "?qm_token=$b", array(), 'GET', array( $pass( 'admitted' ) ), 'redirect', $page, $b, '', array( $b ), true ),
	array( 'a pass arrives over a stored one', "?qm_token=$b", array( $a ), 'GET', array( $pass( 'admitted' ) ), 'redirect', $page, $b, '', array( $b ), true ),
	array( 'the same pass is reloaded', "?qm_token=$a", array( $a ), 'GET', array( $pass() ), 'redirect', $page, null, '', array( $a ), true ),
	array( 'the same pass is over', "?qm_token=$a", array( $a ), 'GET', array( $queue( 'session_expired', true ) ), 'redirect', $wait, '', '', array( $a ), true ),
	array( 'a refused pass, a good cookie', "?qm_token=$b", array( $a ), 'GET', array( $queue( 'no_token', true ), $pass() ), 'redirect', $page, null, '', array( $b, $a ), true ),
	array( 'both refused', "?qm_token=$b", array( $a ), 'GET', array( $queue( 'waiting' ), $queue( 'ejected', true ) ), 'redirect', $wait, '', '', array( $b, $a ), true ),
	array( 'a refused pass clears nothing else', "?qm_token=$b", array(), 'GET', array( $queue( 'no_token', true ) ), 'redirect', $wait, null, '', array( $b ), true ),
	array( 'a refused pass, then an outage', "?qm_token=$b", array( $a ), 'GET', array( $queue( 'waiting' ), 'timeout' ), 'serve', '', null, 'timeout', array( $b, $a ), true ),
	array( 'a refused pass, then busy', "?qm_token=$b", array( $a ), 'GET', array( $queue( 'waiting' ), array( 429, '' ) ), 'redirect', $wait, null, '', array( $b, $a ), true ),
	array( 'another room, good cookie', "?qm_token=$other", array( $a ), 'GET', array( $pass() ), 'redirect', $page, null, '', array( $a ), true ),
	array( 'another room, no cookie', "?qm_token=$other", array(), 'GET', array( $queue( 'no_token' ) ), 'redirect', $wait, null, '', array( '-' ), true ),
	array( 'another room, bypass', "?qm_token=$other", array(), 'GET', array( $pass( 'bypass' ) ), 'redirect', $page, null, '', array( '-' ), true ),
	array( 'another room, out of scope', "?qm_token=$other", array(), 'GET', array( $pass( 'out_of_scope' ) ), 'serve', '', null, '', array( '-' ), false ),
	array( 'another room, fetched ahead', "?qm_token=$other", array(), 'HEAD', array( $queue( 'no_token' ) ), 'redirect', $wait, null, '', array( '-' ), true ),
	array( 'a waiting cookie ends the search', '', array( $a, $b ), 'GET', array( $queue( 'waiting' ) ), 'redirect', $wait, null, '', array( $b ), true ),
	array( 'an unseen pass beside a cookie', "?qm_token=$b", array( $a ), 'GET', array( $pass( 'bypass' ) ), 'redirect', $page, $b, '', array( $b ), true ),
	array( 'an unseen pass alone', "?qm_token=$b", array(), 'GET', array( $pass( 'bypass' ) ), 'redirect', $page, $b, '', array( $b ), true ),
	array( 'a pass arrives with a form', "?qm_token=$b", array(), 'POST', array( $pass( 'admitted' ) ), 'serve', '', $b, '', array( $b ), true ),
	array( 'a pass is fetched ahead', "?qm_token=$b", array(), 'HEAD', array(), 'turn-away', '', null, '', array(), true ),
	array( 'HEAD with a cookie', '', array( $a ), 'HEAD', array( $pass() ), 'serve', '', null, '', array( $a ), true ),
	array( 'an outage keeps the pass in the address', "?qm_token=$b", array(), 'GET', array( 'unreachable' ), 'serve', '', null, 'unreachable', array( $b ), true ),
	array( 'two cookies, the newer passes', '', array( $a, $b ), 'GET', array( $pass() ), 'serve', '', null, '', array( $b ), true ),
	array( 'two cookies, the older passes', '', array( $a, $b ), 'GET', array( $queue( 'room_reset', true ), $pass() ), 'serve', '', null, '', array( $b, $a ), true ),
	array( 'two cookies, both dead', '', array( $a, $b ), 'GET', array( $queue( 'room_reset', true ), $queue( 'no_token', true ) ), 'redirect', $wait, '', '', array( $b, $a ), true ),
	array( '429', '', array( $a ), 'GET', array( array( 429, array( 'code' => 'rate_limited' ) ) ), 'redirect', $wait, null, '', array( $a ), true ),
	array( 'saturated', '', array( $a ), 'GET', array( array( 503, array( 'code' => 'server_saturated' ) ) ), 'redirect', $wait, null, '', array( $a ), true ),
	array( 'storage is down', '', array( $a ), 'GET', array( array( 503, array( 'code' => 'storage_unavailable' ) ) ), 'serve', '', null, 'http-503', array( $a ), true ),
	array( 'an evil waiting page', '', array(), 'GET', array( array( 200, array( 'action' => 'queue', 'waitingRoomUrl' => 'https://evil.example/' ) ) ), 'redirect', $wait, null, '', array( '-' ), true ),
	array( 'no waiting page', '', array(), 'GET', array( array( 200, array( 'action' => 'queue' ) ) ), 'redirect', $wait, null, '', array( '-' ), true ),
	array( 'clearToken that is no boolean', '', array( $a ), 'GET', array( array( 200, array( 'action' => 'queue', 'clearToken' => 'yes' ) ) ), 'redirect', $wait, null, '', array( $a ), true ),
);
foreach ( array( 400, 413, 414 ) as $status ) {
	$rows[] = array( "status $status", '', array(), 'GET', array( array( $status, '' ) ), 'redirect', $wait, null, '', array( '-' ), true );
}
foreach ( array( 301, 302, 401, 403, 404, 418, 500, 502, 503, 504 ) as $status ) {
	$rows[] = array( "status $status", '', array(), 'GET', array( array( $status, '' ) ), 'serve', '', null, "http-$status", array( '-' ), true );
}
foreach ( array( '', '{', 'null', '[]', '"pass"', '{"action":"PASS"}', '{"action":["pass"]}', '{"action":true}', '<html>', "\xff", str_repeat( '[', 99 ), '{"Action":"pass"}' ) as $body ) {
	$rows[] = array( 'body ' . $body, '', array(), 'GET', array( array( 200, $body ) ), 'serve', '', null, 'invalid-response', array( '-' ), true );
}

foreach ( $rows as list( $name, $suffix, $cookies, $method, $answers, $kind, $location, $cookie, $failover, $asked, $protected ) ) {
	check(
		$name,
		array( $kind, $location, $cookie, $failover, $asked, $protected, 'http-401' === $failover || 'http-403' === $failover ),
		static function () use ( $suffix, $cookies, $method, $answers ): array {
			$header  = implode( '; ', array_map( static fn( $value ) => "qm_checkout=$value", $cookies ) );
			$request = request( array( 'REQUEST_URI' => '/checkout/' . $suffix, 'HTTP_COOKIE' => $header, 'REQUEST_METHOD' => $method ) );
			$script  = new Script( $answers );
			$door    = new Door( new QueueServer( 'https://queue.example.com', 'checkout' ), array( $script, 'ask' ), static fn() => $script->now );
			$outcome = $door->decide( $request, array( $request->address ) );
			return array( $outcome->kind, $outcome->location, $outcome->cookie, $outcome->failover, $script->asked, $outcome->is_protected, $outcome->key_refused );
		}
	);
}

// Several addresses: out of scope only when the queue says so for every one; never past the budget.
foreach ( array(
	array( 'all out', array( $pass( 'out_of_scope' ), $pass( 'out_of_scope' ) ), 0.01, 'serve', false, 2 ),
	array( 'one in', array( $pass( 'out_of_scope' ), $queue( 'no_token' ) ), 0.01, 'redirect', true, 2 ),
	array( 'the first in', array( $queue( 'no_token' ) ), 0.01, 'redirect', true, 1 ),
	array( 'no time for the second', array( $pass( 'out_of_scope' ) ), 1.5, 'redirect', true, 1 ),
) as list( $name, $answers, $each, $kind, $protected, $count ) ) {
	check(
		"addresses: $name",
		array( $kind, $protected, $count ),
		static function () use ( $answers, $each ): array {
			$script  = new Script( $answers, $each );
			$door    = new Door( new QueueServer( 'https://queue.example.com', 'checkout' ), array( $script, 'ask' ), static fn() => $script->now );
			$outcome = $door->decide( request(), array( 'https://shop.example.com/?p=7', '' ) );
			return array( $outcome->kind, $outcome->is_protected, count( $script->asked ) );
		}
	);
}
// A query that was cut matters only to rules that look at queries.
foreach ( array(
	array( 'unknown rules', null, 'redirect', 2 ),
	array( 'a rule with a query', array( array( 'pattern' => '/a?b' ) ), 'redirect', 2 ),
	array( 'rules without', array( array( 'pattern' => '/a' ) ), 'serve', 1 ),
	array( 'no list', 'x', 'redirect', 2 ),
	array( 'no texts', array( array( 'pattern' => 7 ), 'x' ), 'redirect', 2 ),
) as list( $name, $patterns, $kind, $count ) ) {
	check(
		"cut query: $name",
		array( $kind, $count ),
		static function () use ( $patterns, $queue ): array {
			$out     = array( 200, array( 'action' => 'pass', 'reason' => 'out_of_scope', 'targeting' => array( 'patterns' => $patterns ) ) );
			$script  = new Script( array( $out, $queue( 'no_token' ) ) );
			$door    = new Door( new QueueServer( 'https://queue.example.com', 'checkout' ), array( $script, 'ask' ), static fn() => $script->now );
			$outcome = $door->decide( request(), array( 'https://shop.example.com/', null ) );
			return array( $outcome->kind, count( $script->asked ) );
		}
	);
}
check(
	'no time for a second token',
	array( 'redirect', 1, true ),
	static function () use ( $queue, $a, $b ): array {
		$script  = new Script( array( $queue( 'waiting' ) ), 1.9 );
		$door    = new Door( new QueueServer( 'https://queue.example.com', 'checkout' ), array( $script, 'ask' ), static fn() => $script->now );
		$request = request( array( 'REQUEST_URI' => "/?qm_token=$b", 'HTTP_COOKIE' => "qm_checkout=$a" ) );
		$outcome = $door->decide( $request, array( $request->address ) );
		return array( $outcome->kind, count( $script->asked ), $script->now <= 102.0 );
	}
);
check(
	'a pass that arrives on a page outside is kept for the pages inside',
	array( 'redirect', 'https://shop.example.com/', token(), false ),
	static function (): array {
		$door    = new Door( new QueueServer( 'https://queue.example.com', 'checkout' ), static fn() => null, static fn() => 0.0 );
		$outcome = $door->outside( request( array( 'REQUEST_URI' => '/?qm_token=' . token() ) ) );
		return array( $outcome->kind, $outcome->location, $outcome->cookie, $outcome->is_protected );
	}
);
