// A hand-made browser page for the snippet: document, address, history, storage, cookies, clock and
// network, and nothing of the snippet itself. Time moves only by `tick`, answers come only from the
// `server` function or by hand, so no test ever waits.

import { readFileSync } from 'node:fs';
import vm from 'node:vm';

export const SOURCE = readFileSync(new URL('../qm.js', import.meta.url), 'utf8');
export const SERVER = 'https://queue.example.com';
export const SITE = 'https://shop.example.com';
export const T0 = 1_700_000_000_000;
const script = new vm.Script(SOURCE, { filename: 'qm.js' });

/** A token that names its room; the signature is the server's business. */
export function token(payload) {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
  return `${Buffer.from(text).toString('base64url')}.c2ln`;
}

/** One turn of the event loop: lets every settled promise run its course. */
export const settle = () => new Promise(setImmediate);

const refuse = () => {
  throw new Error('SecurityError');
};

function makeStorage(items, mode) {
  const map = new Map(Object.entries(items));
  return {
    map,
    getItem: (name) => (mode === 'throws' ? refuse() : (map.get(name) ?? null)),
    setItem: (name, value) => (mode ? refuse() : void map.set(name, String(value))),
    removeItem: (name) => (mode === 'throws' ? refuse() : void map.delete(name)),
  };
}

function makeCookies(initial, mode) {
  const map = new Map(Object.entries(initial));
  const written = [];
  return {
    map,
    written,
    get: () => (mode ? refuse() : [...map].map(([name, value]) => `${name}=${value}`).join('; ')),
    set(line) {
      if (mode) refuse();
      written.push(line);
      const [, name, value] = /^([^=;]+)=([^;]*)/.exec(line);
      if (/; *max-age=0(;|$)/i.test(line)) map.delete(name);
      else map.set(name, value);
    },
  };
}

function makeEvents() {
  const listeners = [];
  return {
    add(type, run, options) {
      listeners.push({ type, run, once: Boolean(options?.once) });
    },
    fire(type, event = {}) {
      for (const entry of listeners.filter((one) => one.type === type)) {
        if (entry.once) listeners.splice(listeners.indexOf(entry), 1);
        entry.run(event);
      }
    },
  };
}

function makeClock(start) {
  const timers = new Map();
  let next = 1;
  const clock = {
    now: start,
    setTimeout(run, ms) {
      timers.set(next, { run, at: clock.now + ms });
      return next++;
    },
    clearTimeout: (id) => void timers.delete(id),
    waiting: () => timers.size,
    tick(ms) {
      clock.now += ms;
      for (const [id, timer] of [...timers]) {
        if (timer.at > clock.now) continue;
        timers.delete(id);
        timer.run();
      }
    },
  };
  return clock;
}

/** The tag as the guide prints it; `null` leaves an attribute out. */
export const tag = (attributes = {}) => ({
  src: `${SERVER}/snippet/qm.js`,
  'data-qm-server': SERVER,
  'data-qm-room': 'checkout',
  ...attributes,
});

function makeElement(attributes, base) {
  const own = Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== null));
  return {
    own,
    getAttribute: (name) => own[name] ?? null,
    src: own.src ? new URL(own.src, base).href : '',
  };
}

/**
 * `server` takes a request, its number and the stored items; it gives `{status?, body}`, `'network'`,
 * or nothing to leave the request open.
 */
function makeNetwork(server, clock, map) {
  const requests = [];
  function begin(kind, url, headers, options, resolve, reject) {
    const parsed = new URL(url);
    const request = {
      kind,
      url,
      path: parsed.pathname,
      room: parsed.searchParams.get('roomId'),
      token: parsed.searchParams.get('token') ?? '',
      page: parsed.searchParams.get('url'),
      key: headers['X-QM-Session'] ?? '',
      headers: { ...headers },
      options,
      answer: (body, status = 200) =>
        resolve(status, typeof body === 'string' ? body : JSON.stringify(body)),
      fail: () => reject(new TypeError('network')),
    };
    requests.push(request);
    const reply = server(request, requests.length, map);
    if (reply === 'network') request.fail();
    else if (reply) request.answer(reply.body, reply.status);
  }
  const fetch = (url, options) =>
    new Promise((resolve, reject) => {
      options.signal?.addEventListener('abort', () => reject(new Error('AbortError')));
      const done = (status, text) => resolve({ status, text: async () => text });
      begin('fetch', url, options.headers ?? {}, options, done, reject);
    });
  class XMLHttpRequest {
    headers = {};
    open(method, url) {
      Object.assign(this, { method, url });
    }
    setRequestHeader(name, value) {
      this.headers[name] = value;
    }
    send() {
      const timer = clock.setTimeout(() => this.ontimeout?.(), this.timeout);
      const done = (status, responseText) => {
        clock.clearTimeout(timer);
        Object.assign(this, { status, responseText });
        this.onload();
      };
      const options = { method: this.method, credentials: this.withCredentials };
      begin('xhr', this.url, this.headers, options, done, () => this.onerror());
    }
  }
  return { requests, fetch, XMLHttpRequest };
}

function makeHistory(page) {
  const go = (state, url) => {
    if (page.historyError) throw page.historyError;
    page.location.href = new URL(url, page.location.href).href;
    page.history.state = state;
    page.historyCalls.push(page.location.href);
  };
  return {
    state: { own: 'state' },
    pushState(state, title, url) {
      go(state, url);
      return 'pushed';
    },
    replaceState(state, title, url) {
      go(state, url);
    },
  };
}

/** Opens a page with the given tags and runs the snippet as `running` (an index, or null). */
export async function open({
  url = `${SITE}/checkout`,
  tags = [tag()],
  running = 0,
  local = {},
  cookies = {},
  storageMode,
  cookieMode,
  noStorage = false,
  server = () => ({ body: { action: 'pass' } }),
  missing = [],
  prerendering = false,
  clock = makeClock(T0),
  globals = {},
  historyError,
} = {}) {
  const elements = tags.map((attributes) => makeElement(attributes, url));
  const storage = makeStorage(local, storageMode);
  const jar = makeCookies(cookies, cookieMode);
  const documentEvents = makeEvents();
  const windowEvents = makeEvents();
  const network = makeNetwork(server, clock, storage.map);
  const left = [];
  const errors = [];
  const location = {
    href: url,
    get protocol() {
      return new URL(location.href).protocol;
    },
    replace: (to) => void left.push(to),
  };
  const page = { location, left, errors, clock, historyCalls: [], historyError };
  page.history = makeHistory(page);
  const document = {
    prerendering,
    get currentScript() {
      return running === null ? null : elements[running];
    },
    querySelectorAll(selector) {
      const names = [...selector.matchAll(/\[([\w-]+)\]/g)].map((found) => found[1]);
      return elements.filter((element) => names.every((name) => name in element.own));
    },
    get cookie() {
      return jar.get();
    },
    set cookie(line) {
      jar.set(line);
    },
    addEventListener: documentEvents.add,
  };
  const window = {
    document,
    location,
    history: page.history,
    console: { error: (...words) => errors.push(words.join(' ')) },
    fetch: network.fetch,
    XMLHttpRequest: network.XMLHttpRequest,
    AbortController,
    URL,
    URLSearchParams,
    atob,
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout,
    Date: { now: () => clock.now },
    addEventListener: windowEvents.add,
    ...globals,
  };
  Object.defineProperty(window, 'localStorage', { get: () => (noStorage ? refuse() : storage) });
  for (const name of missing) delete window[name];
  window.window = window;
  const context = vm.createContext(window);
  Object.assign(page, {
    window,
    document,
    storage,
    jar,
    requests: network.requests,
    run: () => script.runInContext(context),
    fire: async (type, event) => {
      (type === 'prerenderingchange' ? documentEvents : windowEvents).fire(type, event);
      await settle();
    },
    tick: async (ms) => {
      clock.tick(ms);
      await settle();
    },
  });
  page.run();
  await settle();
  return page;
}

/** Where a visitor was sent, taken apart. */
export function destination(page) {
  if (page.left.length !== 1) throw new Error(`left ${page.left.length} times: ${page.left}`);
  const url = new URL(page.left[0]);
  return { room: url.origin + url.pathname, back: url.searchParams.get('qm_return'), url };
}
