<?php
/**
 * The settings as stored, and whether the queue is armed.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Armed means: wanted, and verified with exactly these settings.
 */
final class Settings {

	const OPTION = 'queue_manager_settings';
	const STATUS = 'queue_manager_status';

	/**
	 * The origin of the queue server.
	 *
	 * @var string
	 */
	public $server = '';

	/**
	 * The room's id.
	 *
	 * @var string
	 */
	public $room = '';

	/**
	 * The public key as stored; a constant in wp-config.php wins over it.
	 *
	 * @var string
	 */
	public $stored_key = '';

	/**
	 * Whether visitors are to be queued.
	 *
	 * @var bool
	 */
	public $is_wanted = false;

	/**
	 * The site's own path rules.
	 *
	 * @var string[]
	 */
	public $rules = array();

	/**
	 * Reads what is stored; whatever is missing or of another type keeps its default.
	 */
	public static function load(): self {
		$stored   = get_option( self::OPTION );
		$stored   = is_array( $stored ) ? $stored : array();
		$settings = new self();
		foreach ( array( 'server', 'room', 'stored_key' ) as $name ) {
			$is_text           = isset( $stored[ $name ] ) && is_string( $stored[ $name ] );
			$settings->{$name} = $is_text ? $stored[ $name ] : '';
		}
		$settings->is_wanted = ! empty( $stored['is_wanted'] );
		$settings->rules     = isset( $stored['rules'] ) && is_array( $stored['rules'] )
			? array_values( array_filter( $stored['rules'], 'is_string' ) )
			: array();
		return $settings;
	}

	/**
	 * Stores the settings.
	 */
	public function save(): void {
		update_option( self::OPTION, get_object_vars( $this ) );
	}

	/**
	 * The public key.
	 */
	public function key(): string {
		$key = defined( 'QM_PUBLIC_API_KEY' ) ? constant( 'QM_PUBLIC_API_KEY' ) : $this->stored_key;
		return is_string( $key ) ? trim( $key ) : '';
	}

	/**
	 * Stores how a verification of these settings went.
	 *
	 * @param bool    $is_ok  Whether it passed.
	 * @param array[] $checks Its points: id, status, title, fix.
	 */
	public function remember( bool $is_ok, array $checks ): void {
		update_option(
			self::STATUS,
			array(
				'ok'          => $is_ok,
				'checks'      => $checks,
				'at'          => time(),
				'fingerprint' => $this->fingerprint(),
			)
		);
	}

	/**
	 * How the last verification of exactly these settings went; null when there was none.
	 *
	 * @return array{ok: bool, checks: array[], at: int}|null
	 */
	public function status(): ?array {
		$status = get_option( self::STATUS );
		$known  = is_array( $status ) && isset( $status['fingerprint'], $status['checks'], $status['ok'], $status['at'] );
		return $known && hash_equals( $this->fingerprint(), (string) $status['fingerprint'] ) ? $status : null;
	}

	/**
	 * Whether visitors are queued.
	 */
	public function is_armed(): bool {
		$status = $this->is_wanted ? $this->status() : null;
		return null !== $status && true === $status['ok'];
	}

	/**
	 * What a verification was about. A key that is rotated in wp-config.php must not switch the queue
	 * off: when it is wrong the server says so at every check.
	 */
	private function fingerprint(): string {
		$parts = array( $this->server, $this->room );
		return hash( 'sha256', (string) wp_json_encode( $parts ) );
	}
}
