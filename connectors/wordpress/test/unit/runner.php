<?php
/**
 * Runs the tests of the classes that know nothing of WordPress: every *.test.php beside this file.
 * The last line is "N passed, N failed".
 */

namespace QueueManager\Test;

error_reporting( E_ALL );
set_error_handler(
	static function ( int $level, string $text, string $file, int $line ): bool {
		throw new \ErrorException( $text, 0, $level, $file, $line );
	}
);

require __DIR__ . '/../../queue-manager/includes/load.php';
require __DIR__ . '/visitor.php';

/** Counts, and prints what failed. */
final class Count {
	public static int $passed = 0;
	public static int $failed = 0;
}

/**
 * Runs one row: what is computed must equal what is expected.
 *
 * @param string $name     The row.
 * @param mixed  $expected What is expected.
 * @param callable $compute Computes it.
 */
function check( string $name, $expected, callable $compute ): void {
	try {
		$got = $compute();
	} catch ( \Throwable $fault ) {
		$got = get_class( $fault ) . ': ' . $fault->getMessage();
	}
	if ( $got === $expected ) {
		++Count::$passed;
		return;
	}
	++Count::$failed;
	printf( "FAILED %s\n  expected %s\n  got      %s\n", $name, json_encode( $expected ), json_encode( $got ) );
}

foreach ( glob( __DIR__ . '/*.test.php' ) as $file ) {
	require $file;
}
printf( "%d passed, %d failed\n", Count::$passed, Count::$failed );
exit( Count::$failed > 0 || 0 === Count::$passed ? 1 : 0 );
