<?php
/**
 * A must-use plugin of the test site: shows what the page caches would see, plays the public plugin
 * directory, and does what other plugins do when a test asks for it in the file "behave.json".
 */

$behave = json_decode( (string) @file_get_contents( ABSPATH . 'behave.json' ), true );
$behave = is_array( $behave ) ? $behave : array();
foreach ( isset( $behave['define'] ) ? $behave['define'] : array() as $name => $value ) {
	define( $name, $value );
}
if ( isset( $behave['client_ip'] ) ) {
	foreach ( $behave['client_ip'] as $address ) {
		add_filter(
			'qm_client_ip',
			static function () use ( $address ) {
				return $address;
			}
		);
	}
}
if ( isset( $behave['early_output'] ) && ! is_admin() ) {
	add_action(
		'template_redirect',
		static function () {
			while ( ob_get_level() > 0 ) {
				ob_end_flush();
			}
			echo "\xEF\xBB\xBF";
			flush();
		},
		-9999
	);
}
if ( isset( $behave['throw'] ) ) {
	add_filter(
		'pre_http_request',
		static function () {
			throw new RuntimeException( 'another plugin is broken' );
		}
	);
}
add_action(
	'wp_footer',
	static function () {
		echo '<!-- cached: ' . ( defined( 'DONOTCACHEPAGE' ) ? 'no' : 'yes' ) . ' -->';
	}
);
add_filter(
	'pre_http_request',
	static function ( $answer, $args, $url ) use ( $behave ) {
		if ( 0 !== strpos( $url, 'https://api.wordpress.org/plugins/update-check/' ) && 0 !== strpos( $url, 'http://api.wordpress.org/plugins/update-check/' ) ) {
			return $answer;
		}
		$body = isset( $behave['directory'] ) ? $behave['directory'] : array( 'plugins' => array(), 'translations' => array(), 'no_update' => array() );
		return array(
			'headers'  => array(),
			'body'     => wp_json_encode( $body ),
			'response' => array( 'code' => 200, 'message' => 'OK' ),
			'cookies'  => array(),
			'filename' => null,
		);
	},
	10,
	3
);
