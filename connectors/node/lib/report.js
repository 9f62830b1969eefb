'use strict';

// Tells the operator what happened: to onEvent, or else to the console. Nothing a listener does can
// reach a visitor.

/** On the console these are told each time, since the room is open; the rest once a minute. */
const EVERY_TIME = new Set(['key_refused']);
const QUIET_MS = 60_000;
const WARNINGS_MAX = 50;

class Report {
  constructor({ roomId, onEvent }, now = Date.now) {
    this.roomId = roomId;
    this.onEvent = onEvent;
    this.now = now;
    this.told = new Map();
    this.warned = new Set();
  }

  event(type, message, more = {}) {
    const event = { type, roomId: this.roomId, message, ...more };
    if (!this.onEvent) return this.print(event);
    try {
      const result = this.onEvent(event);
      // A rejected promise of a listener would end the process.
      if (result && typeof result.then === 'function') result.then(undefined, () => {});
    } catch (error) {
      this.print({ ...event, message: `${message} (onEvent threw: ${error instanceof Error ? error.message : String(error)})` });
    }
    return undefined;
  }

  /** A setting to change, told once in the life of the process. */
  warn(message) {
    if (this.warned.has(message) || this.warned.size >= WARNINGS_MAX) return;
    this.warned.add(message);
    this.event('misconfigured', message);
  }

  print({ type, message, failover }) {
    const key = `${type} ${failover ?? ''}`;
    const last = this.told.get(key);
    if (!EVERY_TIME.has(type) && type !== 'misconfigured' && last !== undefined && this.now() - last < QUIET_MS) return;
    this.told.set(key, this.now());
    const line = `queue-manager: room ${this.roomId}: ${message}`;
    if (type === 'busy' || type === 'drift') console.warn(line);
    else console.error(line);
  }
}

module.exports = { Report };
