<?php
/**
 * The query of a check, bounded so that no visitor can make the queue server refuse it.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Says which addresses to ask about and puts the query together.
 */
final class CheckQuery {

	/** Token and agent take up to 1.8 kB of the 4096 bytes the server reads. */
	const ADDRESS_BYTES_MAX = 2000;

	/**
	 * The addresses to ask about. The page is out of scope only when the queue says so for every
	 * one of them. '' asks about a page that nobody can name, which always queues; null does the
	 * same, but only if a rule of the room looks at queries, since it stands for one that was cut.
	 *
	 * @param PageRequest $request   The request.
	 * @param string      $canonical The same page's canonical address, '' when it is no other.
	 * @param bool        $own_rules Whether the site's own rules have decided already.
	 * @return array<int, string|null>
	 */
	public static function addresses( PageRequest $request, string $canonical, bool $own_rules ): array {
		$addresses = array( self::bounded( $request->address ) );
		if ( '' !== $canonical ) {
			$addresses[] = self::bounded( $canonical );
		}
		if ( $own_rules ) {
			$addresses[] = '';
		} elseif ( '' !== $addresses[0] && $addresses[0] !== $request->address ) {
			$addresses[] = null;
		}
		return $addresses;
	}

	/**
	 * The query.
	 *
	 * @param string      $room    The room's id.
	 * @param PageRequest $request The request.
	 * @param Token|null  $token   The token to show, if any.
	 * @param string|null $address The page's address.
	 */
	public static function build( string $room, PageRequest $request, ?Token $token, ?string $address ): string {
		$query = 'roomId=' . rawurlencode( $room );
		if ( null !== $token ) {
			$query .= '&token=' . rawurlencode( $token->text );
		}
		$query .= '&ip=' . rawurlencode( $request->ip ) . '&agent=' . rawurlencode( $request->agent );
		if ( null === $address || '' === $address ) {
			return $query;
		}
		$query .= '&url=' . rawurlencode( $address );
		return strlen( $address ) < strlen( $request->address ) ? $query . '&targeting=1' : $query;
	}

	/**
	 * The address, its query given up first, then all of it.
	 *
	 * @param string $address The address.
	 */
	private static function bounded( string $address ): string {
		foreach ( array( $address, explode( '?', $address, 2 )[0] ) as $form ) {
			if ( strlen( rawurlencode( $form ) ) <= self::ADDRESS_BYTES_MAX ) {
				return $form;
			}
		}
		return '';
	}
}
