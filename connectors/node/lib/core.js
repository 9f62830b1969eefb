'use strict';

// The core in WebAssembly: the queue server's own rules of the door, behind a plain C ABI that takes
// and gives JSON. One instance serves the process; a trap throws it away, and the next call has a new
// one, so that no fault outlives its request.

const OP = { open: 10, plan: 11, conclude: 12 };

const compiled = new WebAssembly.Module(Buffer.from(require('./core-module.js'), 'base64'));
const encoder = new TextEncoder();
const decoder = new TextDecoder();

let instance;
let generation = 0;

function exportsNow() {
  if (!instance) {
    instance = new WebAssembly.Instance(compiled, {}).exports;
    generation += 1;
  }
  return instance;
}

function call(op, value) {
  const { memory, qm_alloc: alloc, qm_free: free, qm_call: invoke } = exportsNow();
  let text;
  try {
    const bytes = encoder.encode(JSON.stringify(value));
    const at = alloc(bytes.length) >>> 0;
    // The memory may have grown, so its buffer is looked at anew each time.
    new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
    const answer = BigInt.asUintN(64, invoke(op, at, bytes.length));
    free(at, bytes.length);
    const [from, length] = [Number(answer >> 32n), Number(answer & 0xffff_ffffn)];
    text = decoder.decode(new Uint8Array(memory.buffer, from, length));
    free(from, length);
  } catch (error) {
    instance = undefined;
    throw error;
  }
  const result = JSON.parse(text);
  if (result.error !== undefined) throw new Error(`the core refuses a question: ${result.error}`);
  return result;
}

/** The door of one room. */
class Door {
  constructor({ server, roomId, publicApiKey, gate, trustProxy, vouch, cookie }) {
    this.settings = {
      server,
      room: roomId,
      publicApiKey: publicApiKey ?? '',
      gate,
      trustProxy: String(trustProxy),
      unvouched: !vouch,
      secureCookie: cookie.secure,
    };
    const { usable, faults } = this.open();
    if (!usable) throw new TypeError(`queue-manager: these options cannot work: ${faults.join('; ')}`);
  }

  open() {
    const opened = call(OP.open, { settings: this.settings });
    this.handle = opened.handle;
    this.generation = generation;
    return opened;
  }

  ask(op, value) {
    exportsNow();
    if (this.generation !== generation) this.open();
    return call(op, { handle: this.handle, ...value });
  }

  /** The first step for a request: {do: 'forward' | 'respond' | 'ask', …}. */
  plan(facts, now) {
    return this.ask(OP.plan, { now, ...facts });
  }

  /** The step after an answer, {status, body} or {failure}. */
  conclude(pending, answer, keyIsFresh) {
    return this.ask(OP.conclude, { pending, answer, keyIsFresh });
  }
}

module.exports = { Door };
