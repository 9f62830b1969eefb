<?php
/**
 * This site's own address, as configured and never as a request names it.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Asks WordPress who we are.
 */
final class Site {

	/**
	 * The origin visitors are returned to, such as https://shop.example.com.
	 */
	public static function origin(): string {
		$url = WebUrl::parse( (string) get_option( 'home' ) );
		return null === $url ? '' : $url->origin;
	}

	/**
	 * Whether visitors reach the site over https, whatever a proxy in front makes PHP see.
	 */
	public static function is_https(): bool {
		return 0 === strpos( self::origin(), 'https:' );
	}

	/**
	 * The canonical address of the page WordPress has found, when the request names it in another
	 * way, such as /?page_id=7. Rules name pages by their canonical address.
	 *
	 * @param string $address The address as requested.
	 * @param bool   $is_get  Whether WordPress would redirect the request.
	 * @return string '' when the request is at the canonical address or below.
	 */
	public static function canonical( string $address, bool $is_get ): string {
		$link      = self::link();
		$canonical = is_string( $link ) ? WebUrl::parse( $link ) : null;
		$requested = WebUrl::parse( $address );
		if ( null === $canonical || null !== $canonical->query ) {
			return '';
		}
		$path  = UrlForms::lower( $canonical->path );
		$given = null === $requested ? '' : UrlForms::lower( $requested->path );
		if ( 0 === strncmp( $given, $path, strlen( $path ) ) ) {
			return '';
		}
		if ( $given . '/' === $path && $is_get && has_action( 'template_redirect', 'redirect_canonical' ) ) {
			return ''; // WordPress adds the slash by a redirect and serves nothing here.
		}
		return self::origin() . $canonical->path;
	}

	/**
	 * WordPress's link to the page it has found.
	 *
	 * @return mixed A text when there is one.
	 */
	private static function link() {
		if ( is_singular() ) {
			return get_permalink( get_queried_object_id() );
		}
		if ( is_category() || is_tag() || is_tax() ) {
			return get_term_link( get_queried_object() );
		}
		if ( is_post_type_archive() ) {
			$type = get_query_var( 'post_type' );
			return get_post_type_archive_link( is_array( $type ) ? (string) reset( $type ) : (string) $type );
		}
		return null;
	}
}
