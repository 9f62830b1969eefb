'use strict';

// The door: asks the core what to do about a request and does it, until the core has decided. All
// rules are the core's; this file has the IO, the clock and the memory of keys.

const { ask } = require('./ask.js');
const { Door } = require('./core.js');
const { watchInstallation } = require('./drift.js');
const { NO_ORIGIN, readFacts } = require('./facts.js');
const { KeyMemory } = require('./keys.js');
const { readOptions } = require('./options.js');
const { Report } = require('./report.js');

/** More questions than this about one request means something is wrong. */
const QUESTIONS_MAX = 4;

class Client {
  constructor(given) {
    this.options = readOptions(given);
    this.door = new Door(this.options);
    this.report = new Report(this.options);
    this.keys = new KeyMemory();
    this.warn = (message) => this.report.warn(message);
  }

  /** Decides about a request. Never rejects. */
  async check(req) {
    try {
      return await this.decide(req);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      return this.passUnchecked(`a fault of this package, a visitor passes unchecked: ${text}`);
    }
  }

  async decide(req) {
    const { facts, origin } = readFacts(req, this.options, this.warn);
    this.renameCookie(facts);
    watchInstallation(this, origin === NO_ORIGIN ? undefined : origin);
    let step = this.plan(facts);
    const end = performance.now() + this.options.timeoutMs;
    let checked = false;
    for (let asked = 0; step.do === 'ask' && asked < QUESTIONS_MAX; asked += 1) {
      checked = true;
      const left = end - performance.now();
      const answer = left > 0 ? await ask(this.question(step, facts), left) : { failure: 'timeout' };
      const key = step.pending.door_key;
      step = this.conclude(step.pending, answer, Boolean(key) && this.keys.isFresh(key));
    }
    return this.finish(step, { origin, checked });
  }

  /** A fault that a visitor's input causes must not open the door: then it is left out and the visitor queues. */
  plan(facts) {
    try {
      return this.door.plan(facts, Date.now());
    } catch {
      const bare = { ...facts, url: facts.url.split('?')[0], headers: {}, address: undefined };
      return this.door.plan(bare, Date.now());
    }
  }

  conclude(pending, { failure, status, body }, keyIsFresh) {
    return this.door.conclude(pending, failure ? { failure } : { status, body }, keyIsFresh);
  }

  /** Unvouched, the question goes out in the visitor's name as far as HTTP can say it. */
  question({ url, headers }, facts) {
    const agent = facts.headers['user-agent'];
    if (this.options.vouch || !agent) return { url, headers };
    return { url, headers: [...headers, ['user-agent', latin1(agent)]] };
  }

  finish(step, { origin, checked }) {
    if (step.note) {
      const more = step.failover ? { failover: step.failover } : {};
      this.report.event(step.note.kind, step.note.text, more);
    }
    if (step.doorKey && !this.options.vouch) this.keys.remember(step.doorKey);
    if (step.do === 'forward') {
      const decision = { action: 'pass', checked, cookies: step.cookies.map((cookie) => this.renameSetCookie(cookie)) };
      if (step.url) decision.url = relative(step.url, origin);
      if (step.failover) decision.failover = step.failover;
      return decision;
    }
    if (step.do === 'respond') return this.respond(step, origin);
    return this.passUnchecked('too many questions about one request, a visitor passes unchecked');
  }

  respond({ status, headers, body }, origin) {
    const decision = { action: 'respond', status, headers: [], body: body ?? '' };
    for (const [name, value] of headers) {
      if (name === 'set-cookie') decision.headers.push([name, this.renameSetCookie(value)]);
      else if (name !== 'location') decision.headers.push([name, value]);
      else if (value.startsWith(`${this.options.server}/w/`)) {
        const target = new URL(value);
        // Nobody told us the site's origin, so there is no way back to name.
        const isUnknown = (target.searchParams.get('qm_return') ?? '').startsWith(`${NO_ORIGIN}/`);
        if (isUnknown) target.searchParams.delete('qm_return');
        decision.headers.push([name, target.href]);
        target.searchParams.delete('qm_return');
        decision.waitingRoomUrl = target.href;
      } else decision.headers.push([name, relative(value, origin)]);
    }
    return decision;
  }

  passUnchecked(message) {
    this.report.event('failover', message, { failover: 'invalid-response' });
    return { action: 'pass', checked: true, cookies: [], failover: 'invalid-response' };
  }

  /** The core knows the cookie as `qm_<room>`; an own name is a matter of this site only. */
  renameCookie(facts) {
    const { name } = this.options.cookie;
    const standard = `qm_${this.options.roomId}`;
    if (name === standard) return;
    const nameOf = (pair) => pair.split('=')[0].trim();
    const pairs = (facts.headers.cookie ?? '').split(';').filter((pair) => nameOf(pair) !== standard);
    facts.headers.cookie = pairs.map((pair) => (nameOf(pair) === name ? pair.replace(name, standard) : pair)).join(';');
  }

  renameSetCookie(cookie) {
    const { name } = this.options.cookie;
    const standard = `qm_${this.options.roomId}=`;
    return cookie.startsWith(standard) ? `${name}=${cookie.slice(standard.length)}` : cookie;
  }
}

const latin1 = (text) => Buffer.from(text, 'utf8').toString('latin1');

/** An address on the page's own origin as a path, so that no proxy's scheme or host gets in between. */
function relative(url, origin) {
  if (!url.startsWith(`${origin}/`)) return url;
  const path = url.slice(origin.length);
  // Two slashes in front would name another host.
  return path.startsWith('//') ? `/.${path}` : path;
}

/** The door of a room. Throws on options that cannot work. */
function createClient(options) {
  const client = new Client(options);
  return { check: (req) => client.check(req) };
}

module.exports = { Client, createClient };
