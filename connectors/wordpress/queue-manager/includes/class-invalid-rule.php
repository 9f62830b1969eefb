<?php
/**
 * Why a rule cannot be saved.
 *
 * @package QueueManager
 */

namespace QueueManager;

/**
 * The message is a word for the kind of fault; people read the text the settings page makes of it.
 */
final class InvalidRule extends \InvalidArgumentException {
}
