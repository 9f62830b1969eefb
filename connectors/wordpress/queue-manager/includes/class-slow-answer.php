<?php
/**
 * An answer that takes longer than there is time.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * Ends a download of ours from within; it never leaves CheckClient.
 */
final class SlowAnswer extends \RuntimeException {
}
