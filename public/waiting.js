/**
 * The waiting page: takes a place in the line, follows it and moves on when the turn comes.
 * One module without imports. The first half is pure and exported for the tests; the second half
 * (TokenStore, Screen, WaitingPage) touches the browser and starts only where there is a document.
 * The server decides everything: no clock of this device ever opens a door.
 */

const [POLL_MS, SILENCE_MS, SPEAK_MS, NOTICE_MS, FETCH_MS, REDIRECT_MS] = [5000, 15000, 15000, 12000, 12000, 1500];
const OWN_PATHS = '/w /api /events /assets /snippet /connectors /docs /metrics /healthz /progress /__qm'.split(' ');

const HEADINGS = { passed: 'heading_passed', bypass: 'heading_passed', refused: 'heading_error', retry: 'heading_error',
  scheduled: 'heading_scheduled', left: 'heading_left' };

const label = (el, name, value) => el.setAttribute(`aria-${name}`, String(value));
const attempt = (action) => {
  try {
    return action() ?? null;
  } catch {
    return null;
  }
};

/** The payload of a token, or null. Nothing is verified: only the server can. */
export function readToken(text) {
  const decode = (part) => Uint8Array.from(atob(part.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
  const payload = attempt(() => JSON.parse(new TextDecoder().decode(decode(text.split('.')[0]))));
  return typeof payload?.r === 'string' ? payload : null;
}

/** Whether `fresh` names the place that `held` names: the same, or the ticket drawn for a pre-queue place. */
export function samePlace(held, fresh) {
  const a = readToken(held);
  const b = readToken(fresh);
  if (!a || !b || a.r !== b.r || a.g !== b.g) return false;
  if (a.q !== undefined) return b.q === a.q || (b.q === undefined && b.n >= 1);
  return a.n !== undefined && a.n === b.n && b.q === undefined;
}

/** What a frame means: expired, passed, bypass, scheduled, paused or waiting. */
export function phaseOf(frame) {
  if (frame.expired) return 'expired';
  if (frame.passed) return frame.state === 'bypass' ? 'bypass' : 'passed';
  if (frame.scheduled || frame.state === 'scheduled') return 'scheduled';
  return frame.state === 'paused' ? 'paused' : 'waiting';
}

/** Puts values in the `{placeholders}` of a sentence. */
export function fill(text, values = {}) {
  return text.replace(/\{(\w+)\}/g, (all, key) => (key in values ? String(values[key]) : all));
}

/** Western digits also in Arabic, as in the support code and the text rendered by the server. */
export const localeOf = (lang) => (lang === 'ar' ? 'ar-u-nu-latn' : lang);

/** A duration in rounded-up parts, coarser the longer it is: [[4, 'minute']], [[1, 'hour'], [30, 'minute']]. */
export function waitParts(seconds) {
  const minutes = Math.ceil(seconds / 60);
  const rounded = minutes <= 10 ? minutes : minutes <= 60 ? Math.ceil(minutes / 5) * 5 : Math.ceil(minutes / 15) * 15;
  if (rounded < 60) return [[rounded, 'minute']];
  if (rounded >= 48 * 60) return [[Math.ceil(minutes / 1440), 'day']];
  if (rounded >= 6 * 60) return [[Math.ceil(minutes / 60), 'hour']];
  return [[Math.floor(rounded / 60), 'hour'], [rounded % 60, 'minute']].filter(([count]) => count > 0);
}

/** Counted units in words of the language: "1 hour, 30 minutes". */
export function unitWords(parts, lang) {
  const format = (unit) => new Intl.NumberFormat(localeOf(lang), { style: 'unit', unit, unitDisplay: 'long' });
  const words = parts.map(([count, unit]) => format(unit).format(count));
  return new Intl.ListFormat(localeOf(lang), { type: 'unit', style: 'long' }).format(words);
}

/** The honest wait: nothing is made up when the server gives no number. */
export function waitWords(etaSec, t, lang, atLeast = false) {
  if (typeof etaSec !== 'number') return t('wait_unknown');
  if (etaSec < 60 && !atLeast) return t('wait_less');
  return t(atLeast ? 'wait_at_least' : 'wait_about', { time: unitWords(waitParts(Math.max(etaSec, 1)), lang) });
}

/** A server instant on the visitor's clock. */
export const localInstant = (instant, now, clientNow) => instant - (now - clientNow);

/** "12:05", "03:12:05", "2 days 03:12:05". */
export function countdownText(ms, lang) {
  const total = Math.max(0, Math.ceil(ms / 1000));
  const clock = new Date((total % 86400) * 1000).toISOString().slice(total < 3600 ? 14 : 11, 19);
  return total < 86400 ? clock : `${unitWords([[Math.floor(total / 86400), 'day']], lang)} ${clock}`;
}

/** The address with `qm_token` in its query; every other byte of the query stays as it is. */
export function withToken(href, token) {
  const url = new URL(href);
  if (!token) return url.href;
  const name = (pair) => attempt(() => decodeURIComponent(pair.split('=')[0]));
  const kept = url.search.slice(1).split('&').filter((pair) => pair && name(pair) !== 'qm_token');
  url.search = [...kept, `qm_token=${encodeURIComponent(token)}`].join('&');
  return url.href;
}

/** Whether an address belongs to the queue itself, where a pass would go round in circles. */
export function isOwnPath(url, origin, base) {
  if (url.origin !== origin) return false;
  const decoded = attempt(() => decodeURIComponent(decodeURIComponent(url.pathname))) ?? url.pathname;
  const path = decoded.replace(/\/+/g, '/').toLowerCase();
  const own = base ? [base.toLowerCase()] : OWN_PATHS;
  return (!base && path === '/') || own.some((p) => path === p || path.startsWith(`${p}/`));
}

/** An address a visitor may be sent to, or null. */
export function usableAddress(href, origin, base) {
  const url = attempt(() => new URL(href));
  const fine = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !isOwnPath(url, origin, base);
  return fine ? url.href : null;
}

/** Where a passed visitor goes by themselves: return address, the room's current target, the target at load. */
export function destination(config, frame, token, origin) {
  for (const href of [config.returnUrl, frame.redirectUrl, config.targetUrl]) {
    const usable = href && usableAddress(href, origin, config.base);
    if (usable) return withToken(usable, token);
  }
  return null;
}

/** Progress from the first position seen at this place; it never runs backwards. */
export function nextProgress(saved, place, position) {
  const known = saved?.place === place ? saved : { first: position, value: 0 };
  const first = Math.max(known.first, position);
  const value = position <= 0 ? 1 : (first - position + 1) / (first + 1);
  return { place, first, value: Math.max(known.value, value) };
}

/** A growing pause spread over 0.5 to 1.5 times its size, so that a crowd does not come back at once. */
export function backoff(attempt, random = Math.random, baseMs = 2000, maxMs = 30000) {
  return Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 20)) * (0.5 + random());
}

/** The pause after a refusal: Retry-After is the least, and randomness comes on top. */
export function refusalPause(retryAfterSec, attempt, random = Math.random) {
  if (!(retryAfterSec > 0)) return backoff(attempt, random, 3000, 60000);
  return retryAfterSec * 1000 + random() * Math.min(15000, 1000 + retryAfterSec * 500);
}

/** Whether the screen reader hears this now: changes of state at once, everything else every 15 seconds. */
export function shouldSpeak(last, next, now) {
  if (!next.text || next.text === last.text) return false;
  return next.key !== last.key || now - last.at >= SPEAK_MS;
}

/** Red, green, blue of #rgb or #rrggbb as relative luminance, or null. */
export function luminance(colour) {
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(colour ?? '')?.[1];
  if (!hex) return null;
  const full = hex.length === 3 ? hex.replace(/./g, '$&$&') : hex;
  const [r, g, b] = [0, 2, 4].map((i) => {
    const c = parseInt(full.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Where the token of this room is kept: cookie, localStorage, and the history entry when neither works. */
class TokenStore {
  constructor(win, room) {
    Object.assign(this, { win, room, key: `qm_${room}`, held: null, rejected: new Set() });
  }

  cookie() {
    const pair = attempt(() => this.win.document.cookie.split(/;\s*/).find((c) => c.startsWith(`${this.key}=`)));
    return pair ? pair.slice(this.key.length + 1).replace(/^"|"$/g, '') : null;
  }

  fromHistory() { return attempt(() => this.win.history.state.qmToken); }

  /** The newest token of this room that was not refused; another tab may have stored a newer one. */
  best() {
    const local = attempt(() => this.win.localStorage.getItem(this.key));
    const all = [this.cookie(), this.held, local, this.fromHistory()].map((token) => ({ token, ...readToken(token) }));
    const usable = all.filter(({ token, r, n }) => r === this.room && n !== 0 && !this.rejected.has(token));
    return usable.sort((a, b) => b.iat - a.iat)[0]?.token ?? null;
  }

  save(token) {
    this.held = token;
    if (token) attempt(() => this.win.localStorage.setItem(this.key, token));
    this.remember(this.cookie() ? null : token);
  }

  reject(token) {
    if (token) this.rejected.add(token);
    this.held = null;
    attempt(() => this.win.localStorage.removeItem(this.key));
    this.remember(null);
  }

  remember(token) {
    if (this.fromHistory() === token) return;
    attempt(() => this.win.history.replaceState({ ...this.win.history.state, qmToken: token }, ''));
  }
}

/** Writes to the page; holds no decision. */
class Screen {
  constructor(win, config, strings) {
    Object.assign(this, { win, doc: win.document, config, strings, spoken: { text: '', key: '', at: -Infinity } });
    this.number = new Intl.NumberFormat(localeOf(config.lang));
    this.baseTitle = this.doc.title;
    this.doc.querySelectorAll('[data-t]').forEach((el) => (el.textContent = this.t(el.dataset.t)));
    this.doc.querySelectorAll('[data-t-label]').forEach((el) => label(el, 'label', this.t(el.dataset.tLabel)));
    this.set('name', config.name === config.branding?.title ? '' : config.name);
    this.theme(config.branding ?? {});
    this.languages(config.langs ?? []);
    this.at('static').remove();
    this.toggle('live', true);
  }

  t = (key, values) => fill(this.strings[key] ?? '', values);
  at = (id) => this.doc.getElementById(`qm-${id}`);
  toggle = (id, shown) => (this.at(id).hidden = !shown);

  set(id, text) {
    if (this.at(id).textContent !== (text || '')) this.at(id).textContent = text || '';
  }

  /** Shows a line with a text, or hides it without. */
  line(id, text) {
    this.set(id, text);
    this.toggle(id, Boolean(text));
  }

  /** Operator colours by CSSOM; text on them is black or white, whichever reads better. */
  theme({ accent, background }) {
    const root = this.doc.documentElement;
    for (const [name, colour] of Object.entries({ page: background, accent })) {
      const light = luminance(colour) > 0.179;
      if (luminance(colour) === null) continue;
      if (name === 'page') root.dataset.scheme = light ? 'light' : 'dark';
      root.style.setProperty(`--${name}`, colour);
      root.style.setProperty(`--on-${name}`, light ? '#000' : '#fff');
    }
  }

  languages(langs) {
    for (const lang of langs) {
      const url = new URL(this.win.location.href);
      url.searchParams.set('lang', lang);
      const text = attempt(() => new Intl.DisplayNames([lang], { type: 'language' }).of(lang)) ?? lang;
      const link = Object.assign(this.doc.createElement('a'), { href: url.href, lang, textContent: text });
      if (lang === this.config.lang) label(link, 'current', 'true');
      link.addEventListener('click', (event) => this.replace(event));
      this.at('langs').append(link);
    }
    this.toggle('langs', langs.length > 1);
  }

  /** Follows a link without leaving this page in the history. */
  replace(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.win.location.replace(event.currentTarget.href);
  }

  time(localMs) {
    const dateStyle = new Date(localMs).toDateString() === new Date().toDateString() ? undefined : 'medium';
    return new Intl.DateTimeFormat(localeOf(this.config.lang), { timeStyle: 'short', dateStyle }).format(localMs);
  }

  progress(value) {
    const bar = this.at('progress');
    bar.classList.toggle('off', value === null);
    label(bar, 'valuenow', Math.round(value * 100));
    bar.style.setProperty('--done', (value ?? 0).toFixed(4));
  }

  title(lead) {
    this.doc.title = lead ? `${lead} · ${this.config.name}` : this.baseTitle;
  }

  speak(text, key, now) {
    if (!shouldSpeak(this.spoken, { text, key }, now)) return;
    this.spoken = { text, key, at: now };
    this.set('announcer', text);
  }
}

/** The controller: join, stream, poll, tabs, redirect. One timer drives every pause. */
class WaitingPage {
  constructor(win, config, strings) {
    Object.assign(this, { win, doc: win.document, config, store: new TokenStore(win, config.roomId) });
    this.screen = new Screen(win, config, strings);
    Object.assign(this, { phase: 'joining', frame: {}, token: null, hasPlace: false, connected: true, leader: false });
    Object.assign(this, { joinAt: Infinity, pollAt: 0, streamAt: 0, probeAt: Infinity, lastFrameAt: -Infinity });
    Object.assign(this, { joinTries: 0, pollTries: 0, streamTries: 0, rejoinTries: 0, rejoinedAt: -1e9 });
    this.reopenedAt = -1e9;
    this.clock = { server: config.now ?? Date.now(), at: this.now() };
    this.message = config.branding?.message ? config.branding : {};
    if (config.lapsed) this.say(config.lapsed === 'expired' ? 'nojs_expired' : 'nojs_reset');
  }

  now = () => this.win.performance.now();
  in = (ms) => this.now() + ms;
  serverNow = () => this.clock.server + this.now() - this.clock.at;
  toLocal = (instant) => localInstant(instant, this.serverNow(), Date.now());
  say = (key) => (this.notice = { text: this.screen.t(key), until: this.in(NOTICE_MS) });

  begin() {
    this.listen();
    this.wake();
    const kept = this.store.fromHistory();
    if (this.config.retry) {
      // The backend is away: nobody is queued, the page only looks now and then whether it is back.
      this.phase = 'retry';
      this.probeAt = this.in(refusalPause(typeof this.config.retry === 'number' ? this.config.retry : 10, 0));
    } else if (kept && !this.store.cookie()) {
      // Without cookies a reload follows the place it had instead of taking another one.
      this.store.held = kept;
      Object.assign(this, { token: kept, hasPlace: true, cookiesBlocked: true });
    } else this.joinAt = 0;
    this.tick();
  }

  wake() {
    this.timer ??= this.win.setInterval(() => this.tick(), 500);
    this.channel ??= attempt(() => new this.win.BroadcastChannel(`qm_${this.config.roomId}`));
    if (this.channel) this.channel.onmessage = ({ data }) => this.hear(data);
    this.lead();
  }

  /** Leaves nothing open, so that the page may go to the back/forward cache. */
  sleep() {
    this.win.clearInterval(this.timer);
    this.closeStream();
    this.channel?.close();
    this.leadership?.abort();
    this.release?.();
    Object.assign(this, { timer: null, channel: null, leader: false });
  }

  /** One tab holds the lock and the stream; the others listen to it. */
  async lead() {
    const { signal } = (this.leadership = new AbortController());
    this.release = this.channel && (await this.lock('stream', { signal }).catch(() => null));
    this.leader = !signal.aborted;
    if (signal.aborted) this.release?.();
  }

  /** Waits for a lock shared by the tabs of this browser; the answer gives it back. */
  lock(name, options = {}) {
    return new Promise((resolve, reject) => {
      const hold = () => new Promise((release) => resolve(release));
      this.win.navigator.locks.request(`qm_${name}_${this.config.roomId}`, options, hold).catch(reject);
    });
  }

  /** Another tab of this browser tells what it received. */
  hear({ frame, token }) {
    if (readToken(token)?.r === this.config.roomId) {
      if (!samePlace(this.token, token)) Object.assign(this, { streamAt: 0 }).closeStream();
      this.token = this.store.held = token;
    }
    this.apply(frame, 'peer');
  }

  listen() {
    const { win, doc, screen } = this;
    const on = (target, type, action) => target.addEventListener(type, action);
    on(win, 'pagehide', () => this.sleep());
    on(win, 'pageshow', (event) => event.persisted && (this.wake(), this.catchUp()));
    on(doc, 'visibilitychange', () => doc.visibilityState === 'visible' && this.catchUp());
    on(win, 'online', () => ((this.cut = false), this.catchUp()));
    on(win, 'offline', () => ((this.cut = true), this.setConnected(false)));
    on(screen.at('continue'), 'click', (event) => screen.replace(event));
    on(screen.at('rejoin'), 'click', () => this.joinNow());
    on(screen.at('leave'), 'click', () => (screen.set('leave-error', ''), screen.at('leave-dialog').showModal()));
    on(screen.at('leave-no'), 'click', () => screen.at('leave-dialog').close());
    on(screen.at('leave-yes'), 'click', () => this.leave());
    on(screen.at('notify-form'), 'submit', (event) => event.preventDefault());
    on(screen.at('notify-form'), 'submit', () => this.sendNotify(screen.at('email').value));
    on(screen.at('notify-remove'), 'click', () => this.sendNotify(''));
  }

  /** The page is looked at again, or the network is back: ask at once and distrust an old stream. */
  catchUp() {
    this.streamTries = this.pollTries = 0;
    if (this.now() - this.lastFrameAt > SILENCE_MS) this.closeStream();
    if (this.hasPlace) this.poll();
    else if (!this.connected && this.joinAt < Infinity) this.joinAt = this.in(Math.random() * 1000);
    this.tick();
  }

  tick() {
    const now = this.now();
    if (now >= this.joinAt) this.join();
    if (now >= this.probeAt) this.probe();
    if (this.hasPlace) this.follow(now);
    if (this.hasPlace && now > this.notice?.until) this.notice = null;
    this.render();
  }

  follow(now) {
    if (this.stream && now - this.streamHeardAt > SILENCE_MS) Object.assign(this, { pollAt: 0 }).closeStream();
    if (this.leader && !this.cut && !this.stream && now >= this.streamAt) this.openStream();
    const informed = this.streamLive || (!this.leader && now - this.lastFrameAt < SILENCE_MS);
    if (!informed && now >= this.pollAt) this.poll();
  }

  /** One request; a status of 0 means that nothing came back. */
  async request(method, path, body) {
    if (this.cut) return { status: 0, json: {} };
    const stop = new AbortController();
    const timer = this.win.setTimeout(() => stop.abort(), FETCH_MS);
    const options = { method, credentials: 'same-origin', cache: 'no-store', redirect: 'manual', signal: stop.signal };
    if (body) Object.assign(options, { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    const response = await this.win.fetch(path, options).catch(() => null);
    const json = (await response?.json().catch(() => null)) ?? {};
    this.win.clearTimeout(timer);
    return { status: response?.status ?? 0, json, retryAfter: Number(response?.headers.get('Retry-After')), response };
  }

  /** Tabs join one after the other: the second one then finds the first one's place. */
  async join() {
    this.joinAt = Infinity;
    if (this.joining) return;
    this.joining = true;
    const unlock = await this.lock('join').catch(() => null);
    const sent = this.store.best();
    const body = { roomId: this.config.roomId, ...(sent && { token: sent }) };
    const answer = await this.request('POST', `${this.config.api}/join`, body);
    unlock?.();
    this.joining = false;
    this.settleJoin(answer, sent);
  }

  joinNow() {
    Object.assign(this, { phase: 'joining', frame: {}, refusal: null, joinAt: 0, notice: null });
    this.tick();
  }

  settleJoin({ status, json, retryAfter }, sent) {
    if (status === 200) {
      this.closeStream();
      if (readToken(json.token)?.n !== 0) this.store.save((this.token = json.token ?? this.token));
      Object.assign(this, { joinTries: 0, streamAt: 0, pollAt: this.in(backoff(0, Math.random, POLL_MS)) });
      this.cookiesBlocked = !this.store.cookie();
      this.apply(json, 'join');
      return;
    }
    if (status === 401 || status === 409) this.store.reject(sent);
    const final = status >= 400 && status < 500 && ![401, 404, 408, 409, 429].includes(status);
    const pause = refusalPause(status === 404 ? 30 : retryAfter, this.joinTries++);
    this.joinAt = final ? Infinity : this.in(pause);
    this.refuse(status ? json.code : 'network', final);
    if (!status) this.setConnected(false);
  }

  refuse(code, final) {
    const key = `err_${code}` in this.screen.strings ? `err_${code}` : 'err_generic';
    Object.assign(this, { phase: 'refused', hasPlace: false, refusal: { key, final } });
    this.render();
  }

  openStream() {
    const query = this.token ? `?token=${encodeURIComponent(this.token)}` : '';
    const stream = (this.stream = new this.win.EventSource(`${this.config.base}/events${query}`));
    const on = (type, action) => stream.addEventListener(type, (event) => this.stream === stream && action(event));
    this.streamHeardAt = this.now();
    on('status', (event) => {
      const frame = attempt(() => JSON.parse(event.data));
      Object.assign(this, { streamLive: true, streamHeardAt: this.now(), streamTries: 0 });
      if (frame) this.apply(frame, 'stream');
    });
    on('refresh', () => {
      // One new stream at once; another refresh soon after waits as after an error.
      const soon = this.now() - this.reopenedAt < 60000;
      this.reopenedAt = this.now();
      this.breakStream(soon ? 5000 : 0, POLL_MS);
    });
    on('error', () => this.breakStream(this.streamLive ? 2000 : 10000, Math.random() * POLL_MS));
  }

  breakStream(pauseMs, pollMs) {
    this.closeStream();
    this.streamAt = this.in(pauseMs && backoff(this.streamTries++, Math.random, pauseMs));
    this.pollAt = Math.max(this.pollAt, this.in(pollMs));
    this.tick();
  }

  closeStream() {
    this.stream?.close();
    Object.assign(this, { stream: null, streamLive: false });
  }

  async poll() {
    if (this.polling) return;
    this.polling = true;
    const asked = this.token;
    const query = asked ? `?token=${encodeURIComponent(asked)}` : '';
    const { status, json, retryAfter } = await this.request('GET', `${this.config.api}/status${query}`);
    this.polling = false;
    this.pollAt = this.in(POLL_MS * (0.8 + Math.random() * 0.4));
    if (asked !== this.token || !this.hasPlace) return;
    if (status === 200) {
      this.pollTries = 0;
      this.apply(json, 'poll');
    } else if (status === 401) {
      this.closeStream();
      this.store.reject(asked);
      Object.assign(this, { token: null, hasPlace: false, phase: 'joining', frame: {} });
      this.rejoin();
    } else {
      this.pollAt = this.in(Math.max(POLL_MS, refusalPause(retryAfter, this.pollTries++)));
      if (!status) this.setConnected(false);
    }
  }

  /** Takes a new place soon, at growing distance when that happens again and again; never without cookies. */
  rejoin() {
    const again = this.now() - this.rejoinedAt < 60000;
    this.rejoinedAt = this.now();
    this.rejoinTries = again ? this.rejoinTries + 1 : 0;
    if (this.cookiesBlocked) this.refuse('no_place', true);
    else this.joinAt = this.in(again ? backoff(this.rejoinTries, Math.random, 4000, 120000) : Math.random() * 2000);
  }

  setConnected(connected) {
    if (this.connected === connected) return;
    this.connected = connected;
    this.lostAt = Date.now() - Math.min(this.now() - this.lastFrameAt, 864e5);
    this.render();
  }

  /** Every frame comes through here: from join, stream, poll or another tab. */
  apply(frame, source) {
    const phase = phaseOf(frame);
    this.lastFrameAt = this.now();
    this.setConnected(true);
    if (typeof frame.now === 'number') this.clock = { server: frame.now, at: this.now() };
    if (frame.token && /stream|poll/.test(source) && samePlace(this.token, frame.token)) {
      this.store.save((this.token = frame.token));
    }
    if (frame.message || !(frame.expired || frame.passed)) this.message = frame;
    if ('notify' in frame) this.notify = frame.notify;
    Object.assign(this, { frame, phase, refusal: null, hasPlace: phase !== 'expired', ref: frame.ref ?? this.ref });
    if (source !== 'peer') this.channel?.postMessage({ frame, token: this.token });
    if (phase === 'expired') this.expire(frame.reason, source);
    else this.joinAt = Infinity;
    this.plan(source);
    this.render();
  }

  expire(reason, source) {
    this.closeStream();
    this.ref = null;
    this.say(`expired_${reason}` in this.screen.strings ? `expired_${reason}` : 'expired_other');
    if (reason === 'left') {
      this.store.reject(this.token);
      Object.assign(this, { phase: 'left', token: null, joinAt: Infinity, notify: undefined, notice: null });
    } else if (source === 'peer') this.joinAt = this.in(10000 + Math.random() * 5000);
    else this.rejoin();
  }

  /** Where a passed visitor goes: by itself to a destination, by hand to the page they came from. */
  plan(source) {
    this.go = null;
    if (this.phase === 'passed' || this.phase === 'bypass') {
      const token = this.frame.token ?? this.token;
      const { origin } = this.win.location;
      const href = destination(this.config, this.frame, token, origin);
      const back = usableAddress(this.doc.referrer, origin, this.config.base);
      if (href) this.go = { href, auto: true };
      else if (back && new URL(back).origin !== origin) this.go = { href: withToken(back, token), auto: false };
    }
    if (this.go?.auto) {
      // Tabs without the stream go a little later: the first one at the door opens the session for all.
      const pause = source === 'peer' ? 2 * REDIRECT_MS : REDIRECT_MS;
      this.redirect ??= this.win.setTimeout(() => this.win.location.replace(this.go.href), pause);
    } else this.redirect = this.win.clearTimeout(this.redirect);
  }

  async leave() {
    const { screen } = this;
    screen.at('leave-yes').disabled = true;
    const { status } = await this.request('POST', `${this.config.api}/leave`, { token: this.token });
    screen.at('leave-yes').disabled = false;
    screen.set('leave-error', status === 200 ? '' : screen.t('leave_failed'));
    if (status !== 200) return;
    this.apply({ expired: true, reason: 'left', state: 'expired', passed: false }, 'leave');
    screen.at('rejoin').focus();
  }

  async sendNotify(email) {
    const body = { token: this.token, email: email.trim() };
    const { status, json } = await this.request('POST', `${this.config.api}/notify`, body);
    const known = { invalid_email: 'notify_invalid', rate_limited: 'err_rate_limited' };
    this.screen.set('notify-error', status === 200 ? '' : this.screen.t(known[json.code] ?? 'notify_error'));
    if (status === 200) this.notify = json.notify;
    if (json.code === 'email_notify_disabled') this.config.notify = false;
    this.render();
  }

  async probe() {
    this.probeAt = Infinity;
    const { response } = await this.request('HEAD', this.win.location.href);
    if (response?.status < 500) this.win.location.reload();
    else this.probeAt = this.in(backoff(this.joinTries++, Math.random, 10000, 60000));
  }

  render() {
    const { screen, phase, frame, config } = this;
    const inLine = ['waiting', 'paused', 'scheduled'].includes(phase);
    const placed = inLine && typeof frame.position === 'number';
    const status = this.statusText();
    screen.at('main').dataset.state = phase;
    screen.at('main').toggleAttribute('data-stale', !this.connected && inLine);
    screen.set('status', status);
    if (!inLine) screen.at('leave-dialog').close();
    if (!config.branding?.title) screen.set('heading', screen.t(HEADINGS[phase] ?? 'heading_waiting'));
    this.renderFigures(inLine, placed);
    this.renderNotes(inLine);
    this.renderMessage();
    this.renderNotify(inLine);
    const position = placed && screen.number.format(frame.position);
    screen.title(phase === 'passed' ? screen.t('heading_passed') : position);
    const text = placed && phase === 'waiting' ? screen.t('announce_place', { position, wait: this.wait() }) : status;
    const extra = [this.connected ? '' : this.offlineText(), this.notice?.text, this.message.message].filter(Boolean);
    screen.speak([...new Set([text, ...extra])].join(' '), [phase, ...extra].join('|'), this.now());
  }

  wait = () => waitWords(this.frame.etaSec, this.screen.t, this.config.lang, this.frame.etaFloor);
  mayRejoin = () => this.phase === 'left' || this.refusal?.key === 'err_no_place';

  statusText() {
    const { phase, notice, frame, go, screen } = this;
    if (phase === 'expired') return notice?.text ?? screen.t('status_joining');
    if (phase === 'passed') return screen.t(go?.auto ? 'status_passed' : 'status_through');
    if (phase === 'scheduled') return screen.t(frame.preQueued ? 'status_scheduled_lot' : 'status_scheduled_place');
    return screen.t({ refused: this.refusal?.key, left: 'expired_left' }[phase] ?? `status_${phase}`);
  }

  renderFigures(inLine, placed) {
    const { screen, frame, phase, config } = this;
    const count = (value) => (typeof value === 'number' ? screen.number.format(value) : '');
    const doors = phase === 'scheduled' && typeof frame.opensAt === 'number';
    screen.toggle('place', placed);
    screen.set('position', placed && count(frame.position));
    screen.toggle('doors', doors);
    if (doors) {
      const left = frame.opensAt - this.serverNow();
      screen.set('countdown', countdownText(left, config.lang));
      const time = screen.time(this.toLocal(frame.opensAt));
      screen.set('opens', left > 0 ? screen.t('opens_at', { time }) : screen.t('opening_now'));
    }
    const rows = [['ahead', placed && count(frame.ahead)], ['here', inLine && count(frame.preCount)]];
    for (const [id, text] of [...rows, ['wait', inLine && this.wait()]]) {
      screen.toggle(`${id}-row`, Boolean(text));
      screen.set(id, text);
    }
    screen.progress(this.progress(placed));
    screen.toggle('actions', this.go || this.mayRejoin());
    screen.toggle('continue', this.go);
    if (this.go && screen.at('continue').href !== this.go.href) screen.at('continue').href = this.go.href;
    screen.toggle('rejoin', this.mayRejoin());
  }

  progress(placed) {
    if (this.phase === 'passed' || this.phase === 'bypass') return 1;
    if (!placed) return null;
    const { n, g } = readToken(this.token) ?? {};
    const key = `qm_first_${this.config.roomId}`;
    const saved = this.seen ?? attempt(() => JSON.parse(this.win.sessionStorage.getItem(key)));
    const next = nextProgress(saved, `${g}.${n}`, this.frame.position);
    const same = next.value === saved?.value && next.place === saved?.place;
    if (!same) attempt(() => this.win.sessionStorage.setItem(key, JSON.stringify(next)));
    this.seen = next;
    return next.value;
  }

  offlineText() {
    if (!this.hasPlace || this.lastFrameAt < 0) return this.phase === 'refused' ? '' : this.screen.t('offline');
    return this.screen.t('offline_place', { time: this.screen.time(this.lostAt) });
  }

  renderNotes(inLine) {
    const { screen, config, refusal } = this;
    const trying = this.phase === 'retry' || (this.phase === 'refused' && !refusal.final);
    const seconds = Math.ceil((Math.min(this.joinAt, this.probeAt) - this.now()) / 1000);
    const time = () => unitWords(seconds < 120 ? [[seconds, 'second']] : waitParts(seconds), config.lang);
    const counting = seconds > 0 && seconds < Infinity;
    screen.line('retry', trying && (counting ? screen.t('retry_in', { time: time() }) : screen.t('retrying')));
    screen.line('offline', !this.connected && this.offlineText());
    screen.line('notice', this.phase !== 'expired' && this.notice?.text);
    screen.toggle('cookies', this.cookiesBlocked);
    screen.toggle('hint', inLine && !this.cookiesBlocked);
    screen.toggle('leave', inLine && !this.cookiesBlocked);
    screen.toggle('ref-row', this.ref);
    screen.set('ref', this.ref);
  }

  renderMessage() {
    const { screen, message } = this;
    const time = typeof message.messageAt === 'number' && screen.time(this.toLocal(message.messageAt));
    screen.toggle('message', message.message);
    screen.set('message-text', message.message);
    screen.line('message-time', time && screen.t('message_updated', { time }));
  }

  renderNotify(inLine) {
    const { screen, notify } = this;
    const key = { sent: 'notify_sent', failed: 'notify_failed' }[notify?.delivery] ?? 'notify_saved';
    screen.toggle('notify', this.config.notify === true && inLine);
    screen.toggle('notify-form', !notify);
    screen.toggle('notify-saved', notify);
    screen.set('notify-text', notify && screen.t(key, { email: notify.emailMasked }));
  }
}

function start(win) {
  const read = (id) => JSON.parse(win.document.getElementById(id).textContent);
  win.QM_CONFIG = read('qm-config');
  const page = new WaitingPage(win, win.QM_CONFIG, read('qm-strings'));
  // A page that is only prerendered takes no place and goes nowhere.
  if (!win.document.prerendering) page.begin();
  else win.document.addEventListener('prerenderingchange', () => page.begin(), { once: true });
}

if (typeof document !== 'undefined') start(window);
