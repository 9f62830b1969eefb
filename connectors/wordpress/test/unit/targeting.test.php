<?php
/**
 * The rule language: the vectors of the core, and the bounds of a rule.
 */

namespace QueueManager\Test;

use QueueManager\InvalidRule;
use QueueManager\RuleSet;

$files = array( __DIR__ . '/../../../../core/vectors/targeting.json' );
$given = getenv( 'QM_VECTORS' );
if ( $given && is_file( $given . '/targeting.json' ) ) {
	$files[] = $given . '/targeting.json';
}
foreach ( $files as $file ) {
	foreach ( json_decode( file_get_contents( $file ), true )['cases'] as $case ) {
		$name = json_encode( array( $case['patterns'], $case['url'] ), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE );
		check(
			$name,
			$case['expect'],
			static function () use ( $case ): array {
				$decision = ( new RuleSet( $case['patterns'] ) )->decide( $case['url'] );
				$rule     = $decision['rule'];
				$got      = array(
					'scope' => $decision['scope'],
					'rule'  => null === $rule ? null : $rule->pattern,
				);
				if ( null !== $rule ) {
					$got['action'] = $rule->is_exception ? 'ignore' : 'queue';
				}
				return $got;
			}
		);
	}
}

$stars = str_repeat( '*', 11 );
foreach ( array(
	array( array( '' ), 'start' ),
	array( array( '!' ), 'start' ),
	array( array( 'checkout' ), 'start' ),
	array( array( '!!/a' ), 'start' ),
	array( array( 'ftp://a/b' ), 'start' ),
	array( array( 'http://a.example/b' ), 'plain_http' ),
	array( array( 'https://a.example' ), 'no_path' ),
	array( array( 'https:///b' ), 'host' ),
	array( array( 'https://*.example/b' ), 'host' ),
	array( array( 'https://u@a.example/b' ), 'host' ),
	array( array( 'https://a.example:99999/b' ), 'host' ),
	array( array( '/a#b' ), 'fragment' ),
	array( array( "/a\tb" ), 'control_character' ),
	array( array( "/a\u{85}" ), 'control_character' ),
	array( array( '/' . $stars ), 'too_many_wildcards' ),
	array( array( '/' . str_repeat( 'a', 300 ) ), 'too_long' ),
	array( array( '/' . str_repeat( 'ก', 300 ) ), 'too_long' ),
	array( array( '/' . str_repeat( 'ก', 299 ) ), '' ),
	array( array( '!/' . str_repeat( 'a', 299 ) ), 'too_long' ),
	array( array_map( static fn( int $n ): string => "/$n", range( 1, 26 ) ), 'too_many' ),
	array( array_map( static fn( int $n ): string => "/$n", range( 1, 25 ) ), '' ),
	array( array_fill( 0, 99, '/same' ), '' ),
) as list( $rules, $problem ) ) {
	check(
		'rule ' . substr( $rules[0], 0, 40 ),
		$problem,
		static function () use ( $rules ): string {
			try {
				new RuleSet( $rules );
				return '';
			} catch ( InvalidRule $fault ) {
				return $fault->getMessage();
			}
		}
	);
}

check(
	'stored rules that are unusable cover everything',
	array( 'in', 'out' ),
	static fn(): array => array(
		RuleSet::stored( array( '/a', 'nonsense' ) )->decide( 'https://s.example/b' )['scope'],
		RuleSet::stored( array( '/a' ) )->decide( 'https://s.example/b' )['scope'],
	)
);

check(
	'lines of a field',
	array( '/a*', '!/b' ),
	static fn(): array => RuleSet::lines( " /a* \r\n\r\n\t!/b\n" )
);

check(
	'a hostile pattern on a hostile path stays fast',
	true,
	static function (): bool {
		$began = hrtime( true );
		$rule  = '/' . str_repeat( str_repeat( 'a', 20 ) . '*', 10 ) . 'b';
		$page  = 'https://s.example/' . str_repeat( 'a', 4000 );
		for ( $i = 0; $i < 50; $i++ ) {
			( new RuleSet( array( $rule ) ) )->decide( $page );
		}
		return hrtime( true ) - $began < 2e9;
	}
);
