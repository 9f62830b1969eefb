<?php
/**
 * What the site does with a request.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Serve the page, or send a redirect, or turn a speculative request away.
 */
final class Outcome {

	const SERVE    = 'serve';
	const REDIRECT = 'redirect';
	const TURN     = 'turn-away';

	/**
	 * SERVE, REDIRECT or TURN.
	 *
	 * @var string
	 */
	public $kind;

	/**
	 * Where a redirect leads.
	 *
	 * @var string
	 */
	public $location = '';

	/**
	 * The token to store; '' to delete the stored one; null to leave it alone.
	 *
	 * @var string|null
	 */
	public $cookie = null;

	/**
	 * How the queue failed, when the page is served for that reason.
	 *
	 * @var string
	 */
	public $failover = '';

	/**
	 * Whether the page is a protected one, which no shared cache may keep.
	 *
	 * @var bool
	 */
	public $is_protected = true;

	/**
	 * Whether the queue server refused the key.
	 *
	 * @var bool
	 */
	public $key_refused = false;

	/**
	 * An outcome.
	 *
	 * @param string $kind     SERVE, REDIRECT or TURN.
	 * @param string $location Where a redirect leads.
	 */
	public function __construct( string $kind, string $location = '' ) {
		$this->kind     = $kind;
		$this->location = $location;
	}
}
