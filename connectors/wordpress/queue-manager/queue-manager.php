<?php
/**
 * Plugin Name:       Queue Manager
 * Description:       A virtual waiting room in front of this site, run on your own queue server.
 * Version:           1.2.1
 * Requires at least: 5.8
 * Requires PHP:      7.4
 * License:           MIT
 * Text Domain:       queue-manager
 * Domain Path:       /languages
 * Update URI:        https://queue-manager.invalid/wordpress
 *
 * @package QueueManager
 */

namespace QueueManager;

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

const VERSION = '1.2.1';

define( __NAMESPACE__ . '\BASENAME', plugin_basename( __FILE__ ) );

require __DIR__ . '/includes/load.php';

add_action(
	'init',
	static function (): void {
		load_plugin_textdomain( 'queue-manager', false, dirname( BASENAME ) . '/languages' );
	}
);

Gate::register();
Updater::register();
if ( is_admin() ) {
	SettingsForm::register();
	SettingsPage::register();
}
