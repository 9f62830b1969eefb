<?php
/**
 * The rules of this site.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Says which pages are queued, as the queue server would.
 */
final class RuleSet {

	const RULES_MAX = 25;

	const IN      = 'in';
	const OUT     = 'out';
	const UNKNOWN = 'unknown';

	/**
	 * The rules, each once.
	 *
	 * @var Rule[]
	 */
	private $rules = array();

	/**
	 * Reads rules.
	 *
	 * @param string[] $texts The rules as written.
	 * @throws InvalidRule When one is out of bounds, or there are too many.
	 */
	public function __construct( array $texts ) {
		foreach ( array_unique( $texts ) as $text ) {
			if ( count( $this->rules ) === self::RULES_MAX ) {
				throw new InvalidRule( 'too_many' );
			}
			$this->rules[] = new Rule( $text );
		}
	}

	/**
	 * The rules as stored. They were checked when they were saved; should they be unusable all the
	 * same, every page is covered rather than none.
	 *
	 * @param string[] $texts The rules.
	 */
	public static function stored( array $texts ): self {
		try {
			return new self( $texts );
		} catch ( InvalidRule $fault ) {
			return new self( array() );
		}
	}

	/**
	 * The rules a person wrote into a text field, one a line.
	 *
	 * @param string $text The field.
	 * @return string[]
	 */
	public static function lines( string $text ): array {
		$lines = array_map( 'trim', (array) preg_split( '/\R/', $text ) );
		return array_values( array_filter( $lines, 'strlen' ) );
	}

	/**
	 * Whether there are none, which covers every page.
	 */
	public function is_empty(): bool {
		return array() === $this->rules;
	}

	/**
	 * Whether a page is covered, and by which rule. A page whose address is unclear is never out.
	 *
	 * @param string|null $address The page's address.
	 * @return array{scope: string, rule: Rule|null}
	 */
	public function decide( ?string $address ): array {
		if ( $this->is_empty() ) {
			return self::decision( self::IN );
		}
		$url = null === $address ? null : WebUrl::parse( $address );
		if ( null === $url ) {
			return self::decision( self::UNKNOWN );
		}
		$forms     = new UrlForms( $url );
		$inclusion = null;
		$has_any   = false;
		foreach ( $this->rules as $rule ) {
			if ( $rule->is_exception && $rule->covers( $url, $forms ) ) {
				return self::decision( self::OUT, $rule );
			}
			if ( ! $rule->is_exception ) {
				$has_any   = true;
				$inclusion = null === $inclusion && $rule->covers( $url, $forms ) ? $rule : $inclusion;
			}
		}
		$is_in = null !== $inclusion || ! $has_any;
		return self::decision( $is_in ? self::IN : self::OUT, $inclusion );
	}

	/**
	 * A decision.
	 *
	 * @param string    $scope IN, OUT or UNKNOWN.
	 * @param Rule|null $rule  The rule that decided, if one did.
	 * @return array{scope: string, rule: Rule|null}
	 */
	private static function decision( string $scope, ?Rule $rule = null ): array {
		return array(
			'scope' => $scope,
			'rule'  => $rule,
		);
	}
}
