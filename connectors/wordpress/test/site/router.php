<?php
/**
 * Plays the web server in front of WordPress: gives each request the visitor's address and the scheme
 * that the test names, and serves files as they are.
 */

foreach ( array( 'X_TEST_ADDRESS' => 'REMOTE_ADDR', 'X_TEST_HTTPS' => 'HTTPS' ) as $from => $to ) {
	if ( isset( $_SERVER[ 'HTTP_' . $from ] ) ) {
		$_SERVER[ $to ] = $_SERVER[ 'HTTP_' . $from ];
		unset( $_SERVER[ 'HTTP_' . $from ] );
	}
}
$path = (string) parse_url( 'http://x' . explode( '?', $_SERVER['REQUEST_URI'], 2 )[0], PHP_URL_PATH );
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if ( is_dir( $file ) ) {
	$file = rtrim( $file, '/' ) . '/index.php';
}
if ( '/' !== $path && is_file( $file ) && false === strpos( $path, '..' ) ) {
	if ( '.php' !== substr( $file, -4 ) ) {
		return false;
	}
	$script = $file;
} else {
	$script = $_SERVER['DOCUMENT_ROOT'] . '/index.php';
}
$_SERVER['SCRIPT_FILENAME'] = $script;
$_SERVER['SCRIPT_NAME']     = substr( $script, strlen( $_SERVER['DOCUMENT_ROOT'] ) );
$_SERVER['PHP_SELF']        = $_SERVER['SCRIPT_NAME'];
chdir( dirname( $script ) );
require $script;
