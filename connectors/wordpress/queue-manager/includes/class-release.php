<?php
/**
 * A release of this plugin as the connector registry announces it.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Reads the registry's update document. Only a release that can be checked is one.
 */
final class Release {

	/**
	 * The document's members, the required ones checked.
	 *
	 * @var array
	 */
	private $members;

	/**
	 * Use parse().
	 *
	 * @param array $members The members.
	 */
	private function __construct( array $members ) {
		$this->members = $members;
	}

	/**
	 * Reads the document.
	 *
	 * @param string $text   JSON.
	 * @param string $origin The origin it came from; packages from elsewhere are refused.
	 * @return self|null
	 */
	public static function parse( string $text, string $origin ): ?self {
		$members = json_decode( $text, true, 16 );
		$members = is_array( $members ) ? $members : array();
		foreach ( array( 'slug', 'version', 'download_url', 'sha256' ) as $name ) {
			if ( ! isset( $members[ $name ] ) || ! is_string( $members[ $name ] ) ) {
				return null;
			}
		}
		$url = WebUrl::parse( $members['download_url'] );
		if ( null === $url || $url->origin !== $origin || 'queue-manager' !== $members['slug'] ) {
			return null;
		}
		$is_version = preg_match( '/\A[0-9]+\.[0-9]+\.[0-9]+\z/', $members['version'] );
		$is_digest  = preg_match( '/\A[0-9a-f]{64}\z/', $members['sha256'] );
		return $is_version && $is_digest ? new self( $members ) : null;
	}

	/**
	 * What WordPress's update cycle wants to know.
	 *
	 * @param string $origin The origin of the queue server.
	 */
	public function update( string $origin ): array {
		return array(
			'slug'         => 'queue-manager',
			'version'      => $this->members['version'],
			'url'          => $origin . '/docs/integration#installable-connectors',
			'package'      => $this->members['download_url'],
			'tested'       => $this->text( 'tested' ),
			'requires_php' => $this->text( 'requires_php' ),
			'sha256'       => $this->members['sha256'],
		);
	}

	/**
	 * What WordPress shows in the window with details.
	 *
	 * @param string $origin The origin of the queue server.
	 */
	public function details( string $origin ): \stdClass {
		$sections = isset( $this->members['sections'] ) && is_array( $this->members['sections'] )
			? array_filter( $this->members['sections'], 'is_string' )
			: array();
		return (object) array(
			'name'          => 'Queue Manager',
			'slug'          => 'queue-manager',
			'version'       => $this->members['version'],
			'homepage'      => $origin,
			'requires'      => $this->text( 'requires' ),
			'tested'        => $this->text( 'tested' ),
			'requires_php'  => $this->text( 'requires_php' ),
			'last_updated'  => $this->text( 'last_updated' ),
			'download_link' => $this->members['download_url'],
			'sections'      => array_map( 'wp_kses_post', $sections ),
		);
	}

	/**
	 * An optional member.
	 *
	 * @param string $name Its name.
	 */
	private function text( string $name ): string {
		return isset( $this->members[ $name ] ) && is_string( $this->members[ $name ] ) ? $this->members[ $name ] : '';
	}
}
