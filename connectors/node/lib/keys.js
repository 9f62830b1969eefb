'use strict';

// Door keys this process saw the queue issue (vouch: false only). A key counts while the queue is
// too busy to judge it: only when it is in here, and was issued within half an hour.

const KEYS_MAX = 10_000;
const FRESH_MS = 30 * 60 * 1000;

class KeyMemory {
  constructor(now = Date.now) {
    this.now = now;
    this.issued = new Map();
  }

  remember(key) {
    this.issued.delete(key);
    this.issued.set(key, this.now());
    // A Map keeps the order of insertion: the first one is the oldest.
    if (this.issued.size > KEYS_MAX) this.issued.delete(this.issued.keys().next().value);
  }

  isFresh(key) {
    const at = this.issued.get(key);
    if (at === undefined) return false;
    if (this.now() - at < FRESH_MS) return true;
    this.issued.delete(key);
    return false;
  }
}

module.exports = { FRESH_MS, KEYS_MAX, KeyMemory };
