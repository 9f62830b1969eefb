<?php
/**
 * Which documents announce an update, and that the plugin is written for the PHP it promises.
 */

namespace QueueManager\Test;

use QueueManager\Release;

$good = array(
	'name'         => 'Queue Manager',
	'slug'         => 'queue-manager',
	'version'      => '1.3.0',
	'requires'     => '5.8',
	'tested'       => '6.1',
	'requires_php' => '7.4',
	'download_url' => 'https://queue.example.com/connectors/wordpress/queue-manager-1.3.0.zip',
	'sha256'       => str_repeat( 'a', 64 ),
	'last_updated' => '2026-01-01',
	'sections'     => array( 'description' => 'A waiting room.' ),
);
foreach ( array(
	array( array(), true ),
	array( array( 'sections' => 'x', 'tested' => 7 ), true ),
	array( array( 'slug' => 'other' ), false ),
	array( array( 'version' => '1.3' ), false ),
	array( array( 'version' => '9.9.9-evil' ), false ),
	array( array( 'version' => 1 ), false ),
	array( array( 'sha256' => '' ), false ),
	array( array( 'sha256' => str_repeat( 'A', 64 ) ), false ),
	array( array( 'download_url' => 'https://evil.example/x.zip' ), false ),
	array( array( 'download_url' => 'http://queue.example.com/x.zip' ), false ),
	array( array( 'download_url' => '/x.zip' ), false ),
) as list( $change, $is_one ) ) {
	check(
		'release ' . json_encode( $change ),
		$is_one,
		static fn() => null !== Release::parse( json_encode( $change + $good ), 'https://queue.example.com' )
	);
}
foreach ( array( '', 'null', '[]', '{', '"x"' ) as $text ) {
	check( "no release $text", null, static fn() => Release::parse( $text, 'https://queue.example.com' ) );
}
check(
	'what WordPress is told',
	array( '1.3.0', $good['download_url'], $good['sha256'] ),
	static function () use ( $good ): array {
		$update = Release::parse( json_encode( $good ), 'https://queue.example.com' )->update( 'https://queue.example.com' );
		return array( $update['version'], $update['package'], $update['sha256'] );
	}
);

// PHP 7.4 has none of these; the interpreter that runs the tests has them all.
$newer  = array( 'str_contains', 'str_starts_with', 'str_ends_with', 'get_debug_type', 'array_is_list', 'fdiv', 'mb_str_pad' );
$kinds  = array( 'T_MATCH', 'T_NULLSAFE_OBJECT_OPERATOR', 'T_ATTRIBUTE', 'T_ENUM', 'T_READONLY' );
$folder = __DIR__ . '/../../queue-manager';
foreach ( array_merge( glob( "$folder/*.php" ), glob( "$folder/includes/*.php" ) ) as $file ) {
	check(
		'PHP 7.4: ' . basename( $file ),
		array(),
		static function () use ( $file, $newer, $kinds ): array {
			$found = array();
			foreach ( token_get_all( (string) file_get_contents( $file ) ) as $token ) {
				$text = is_array( $token ) ? $token[1] : $token;
				if ( is_array( $token ) && ( in_array( token_name( $token[0] ), $kinds, true ) || ( T_STRING === $token[0] && in_array( $text, array_merge( $newer, array( 'mixed', 'never' ) ), true ) ) ) ) {
					$found[] = $text;
				}
			}
			$code = (string) file_get_contents( $file );
			if ( preg_match( '/__construct\(\s*(?:public|private|protected)|\)\s*:\s*(?:static|\w+\|\w+)|catch \( [\\\\\w]+ \)/', $code, $match ) ) {
				$found[] = $match[0];
			}
			return $found;
		}
	);
}

check(
	'one version in all places',
	array( '1.2.1', '1.2.1', '1.2.1' ),
	static function () use ( $folder ): array {
		$main = file_get_contents( "$folder/queue-manager.php" );
		preg_match( '/^ \* Version: +(\S+)$/m', $main, $header );
		preg_match( "/^const VERSION = '(.+)';$/m", $main, $constant );
		preg_match( '/^Stable tag: (\S+)$/m', file_get_contents( "$folder/readme.txt" ), $readme );
		return array( $header[1], $constant[1], $readme[1] );
	}
);
