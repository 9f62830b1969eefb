<?php
/**
 * Finds the file of a class: class FooBar lives in class-foo-bar.php.
 *
 * @package QueueManager
 */

namespace QueueManager;

spl_autoload_register(
	static function ( string $name ): void {
		if ( ! preg_match( '/\AQueueManager\\\\([A-Za-z]+)\z/', $name, $found ) ) {
			return;
		}
		$words = strtolower( (string) preg_replace( '/(?<=[a-z])(?=[A-Z])/', '-', $found[1] ) );
		$file  = __DIR__ . '/class-' . $words . '.php';
		if ( is_file( $file ) ) {
			require $file;
		}
	}
);
