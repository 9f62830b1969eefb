<?php
/**
 * Removes everything the plugin has stored, on every site of a network.
 *
 * @package QueueManager
 */

namespace QueueManager;

if ( ! defined( 'WP_UNINSTALL_PLUGIN' ) ) {
	exit;
}

/**
 * Removes what one site has stored.
 */
function forget_site(): void {
	foreach ( array( 'settings', 'status', 'key_refused', 'proxy_seen' ) as $name ) {
		delete_option( 'queue_manager_' . $name );
	}
}

if ( is_multisite() ) {
	foreach ( get_sites( array( 'fields' => 'ids', 'number' => 0 ) ) as $queue_manager_site ) {
		switch_to_blog( $queue_manager_site );
		forget_site();
		restore_current_blog();
	}
} else {
	forget_site();
}
