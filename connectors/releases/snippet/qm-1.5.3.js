/*!
 * Queue Manager snippet 1.5.3
 * Asks the queue whether this page may be seen now; sends the visitor to the waiting page if not.
 *
 * A classic script without dependencies, served as written. Whatever goes wrong in here must never
 * break the page: every storage access is guarded, and without an answer the visitor stays.
 */
(function () {
  'use strict';

  const VERSION = '1.5.3';

  /** How long a key counts while the queue is too busy to judge it: its usual idle time. */
  const KEY_FRESH_MS = 30 * 60 * 1000;

  /** The queue refuses addresses above 4096 bytes, and a refusal must not become a way past it. */
  const URL_LENGTH_MAX = 4000;

  /** What the queue can have issued: safe in a URL, a header and a cookie without encoding. */
  const ISSUED = /^[\w.-]{1,1024}$/;

  const V1_PATH = '/api/v1/check';

  // A second copy of the tag has nothing to add. The version tells us apart from an element that
  // happens to have this id.
  if (window.QueueManager && window.QueueManager.version) return;

  const attempt = (action) => {
    try {
      return action();
    } catch (e) {
      return undefined;
    }
  };

  // ---- Settings ---------------------------------------------------------------------------------

  /** The script element that holds the settings. */
  function findTag() {
    const running = document.currentScript;
    if (running && running.getAttribute('data-qm-room')) return running;
    const complete = document.querySelectorAll('script[data-qm-server][data-qm-room]');
    if (complete.length) return complete[complete.length - 1];
    if (running) return running;
    // Inserted in a way that hides the running element, and no attributes: the file name is left.
    const named = /\/snippet\/qm\.js|\/qm\.js(\?|$)/;
    return Array.from(document.querySelectorAll('script[src]'))
      .filter((script) => named.test(script.src))
      .pop();
  }

  const originOf = (text) =>
    attempt(() => {
      const url = new URL(text);
      return /^https?:$/.test(url.protocol) ? url.origin : '';
    });

  /** Reads the settings, or says once what is wrong with them and gives nothing. */
  function readSettings() {
    const tag = findTag();
    if (!tag) return undefined;
    const src = tag.src || '';
    // Cut at the first "?" only: a fragment stays in the last value, where it shows.
    const query = new URLSearchParams(src.indexOf('?') < 0 ? '' : src.slice(src.indexOf('?') + 1));
    // An attribute hides its parameter even when its value is of no use.
    const setting = (name) => tag.getAttribute('data-qm-' + name) || query.get(name) || '';
    const complain = (problem) => void console.error('Queue Manager: ' + problem);

    const given = setting('server');
    const server = originOf(given) || originOf(src);
    const room = setting('room');
    const timeout = setting('timeout');
    // Code pasted into a page without any server is switched off, which is no error.
    if (!server) return given && complain('data-qm-server is not an http(s) origin: ' + given);
    if (!room) return complain('data-qm-room is missing');
    if (!/^[\w-]{1,64}$/.test(room)) return complain('data-qm-room is not a room id: ' + room);
    return {
      server,
      room,
      // Nine digits stay below the point where a browser's timer overflows and fires at once.
      timeout: (/^\d{1,9}$/.test(timeout) && Number(timeout)) || 2000,
      spa: setting('spa').toLowerCase() === 'auto',
    };
  }

  const settings = attempt(readSettings);
  if (!settings) return;

  const server = settings.server;
  const room = settings.room;

  // ---- Storage: localStorage, with a cookie copy for browsers that refuse it --------------------

  const TOKEN = 'qm_' + room;
  const KEY = 'qmk_' + room;
  const KEY_TIME = 'qmt_' + room;

  const issued = (value) => (typeof value === 'string' && ISSUED.test(value) ? value : '');

  const local = (action) => attempt(() => action(window.localStorage));

  const readCookie = (name) =>
    attempt(() => document.cookie.match('(?:^|; *)' + name + '="?([^;"]*)')[1]);

  const writeCookie = (name, value) =>
    attempt(() => {
      const secure = location.protocol === 'https:' ? '; Secure' : '';
      const age = value ? 86400 : 0;
      document.cookie = name + '=' + value + '; Path=/; SameSite=Lax; Max-Age=' + age + secure;
    });

  const read = (name) =>
    issued(local((storage) => storage.getItem(name))) || issued(readCookie(name));

  const writeLocal = (name, value) =>
    local((storage) => {
      storage.removeItem(name); // a full storage must not keep the old value
      if (value) storage.setItem(name, value);
    });

  function write(name, value) {
    writeLocal(name, value);
    writeCookie(name, value);
  }

  /** Deletes this value; a cookie that holds another one is another pass. */
  function forget(name, value) {
    writeLocal(name);
    if (readCookie(name) === value) writeCookie(name, '');
  }

  const stored = () => ({ token: read(TOKEN), key: read(KEY) });

  const same = (one, other) => one.token === other.token && one.key === other.key;

  /** A key that somebody made up, or one from an earlier visit, has no recent time of issue. */
  function hasFreshKey() {
    const age = Date.now() - local((storage) => storage.getItem(KEY_TIME));
    return read(KEY) && age >= 0 && age <= KEY_FRESH_MS;
  }

  // ---- The page's address -----------------------------------------------------------------------

  /** Takes every qm_token off the page's address; the rest stays as it is, byte for byte. */
  function readAddress() {
    const parts = /^([^?#]*)(\?[^#]*)?(#.*)?$/.exec(location.href);
    const tokens = [];
    const rest = (parts[2] || '').slice(1).split('&').filter((pair) => {
      const found = /^qm_token(=|$)/.test(pair);
      if (found) tokens.push(pair.slice(9));
      return !found;
    });
    if (!tokens.length) return { href: location.href, tokens };
    const query = rest.length ? '?' + rest.join('&') : '';
    return { href: parts[1] + query + (parts[3] || ''), tokens };
  }

  /** What the queue is asked about; the fragment is the page's own business. */
  const page = () => readAddress().href.split('#')[0];

  /** Appends the address, giving up its fragment, then its query, then all of it to fit. */
  const append = (head, address) =>
    [address, address.split('#')[0], address.split(/[?#]/)[0], '']
      .map((form) => head + encodeURIComponent(form))
      .find((url) => url.length <= URL_LENGTH_MAX);

  const namesThisRoom = (token) =>
    attempt(() => {
      const payload = token.split('.')[0].replace(/-/g, '+').replace(/_/g, '/');
      return JSON.parse(atob(payload)).r === room;
    });

  const replaceState = attempt(() => history.replaceState); // before we wrap it

  /** A pass that came in the address: anybody can write one there, so it has to prove itself. */
  let candidate = '';

  function takeCandidate() {
    const address = readAddress();
    if (!address.tokens.length) return;
    address.tokens.forEach((token) => {
      if (issued(token) && namesThisRoom(token)) candidate = token;
    });
    attempt(() => replaceState.call(history, history.state, '', address.href));
  }

  // ---- The check --------------------------------------------------------------------------------

  let path = V1_PATH;
  let checked; // the address the queue was last asked about
  let running; // the check under way; there is never a second one beside it
  let wanted; // somebody asked for a check meanwhile

  function requestByFetch(url, key) {
    const abort = new AbortController();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(); // first: a patched fetch may ignore the signal
        abort.abort();
      }, settings.timeout);
      fetch(url, {
        credentials: 'omit',
        cache: 'no-store',
        headers: key ? { 'X-QM-Session': key } : {},
        signal: abort.signal,
      })
        .then((response) => response.text().then((text) => [response.status, text]))
        .then(resolve, reject)
        .then(() => clearTimeout(timer));
    });
  }

  function requestByXhr(url, key) {
    return new Promise((resolve, reject) => {
      const xhr = new XMLHttpRequest();
      xhr.open('GET', url);
      xhr.timeout = settings.timeout;
      if (key) xhr.setRequestHeader('X-QM-Session', key);
      xhr.onload = () => resolve([xhr.status, xhr.responseText]);
      xhr.onerror = xhr.ontimeout = xhr.onabort = reject;
      xhr.send();
    });
  }

  /** Asks once and acts on the answer. What is not an answer changes nothing: fail open. */
  function ask(sent, again) {
    checked = page();
    const head = server + path + '?roomId=' + room + (sent.token && '&token=' + sent.token);
    const request = window.fetch && window.AbortController ? requestByFetch : requestByXhr;
    return request(append(head + '&url=', checked), sent.key).then((reply) => {
      const status = reply[0];
      const answer = attempt(() => JSON.parse(reply[1])) || {};
      if (status === 404 && path === V1_PATH) {
        path = '/api/check'; // an old server, for as long as this page lives
        return ask(sent, again);
      }
      // Busy is not broken. Who was let in lately stays; the next answer judges their key.
      if (status === 429 || (status === 503 && answer.code === 'server_saturated')) {
        return hasFreshKey() || leave();
      }
      if (status >= 300) return undefined;
      if (answer.action === 'pass') return admit(sent, answer);
      if (answer.action === 'queue') return refuse(sent, answer, again);
      return undefined;
    });
  }

  function admit(sent, answer) {
    const key = issued(answer.sess);
    if (!key) {
      if (!sent.candidate) return;
      // The queue did not look at the token, so a link must not cost a visitor their own pass.
      if (/^(no_room|bypass|out_of_scope)$/.test(answer.reason) && read(TOKEN)) return;
    }
    // Token and key go together: another tab may have changed either in the meantime.
    if (sent.token) write(TOKEN, sent.token);
    write(KEY, key);
    writeLocal(KEY_TIME, key && Date.now());
    if (sent.candidate) candidate = '';
  }

  function refuse(sent, answer, again) {
    if (sent.candidate) candidate = '';
    let now = stored();
    if (answer.clearToken && same(now, sent)) {
      forget(TOKEN, sent.token);
      forget(KEY, sent.key);
      writeLocal(KEY_TIME);
      now = stored();
    }
    // The answer is about something else than what we have now: a refused candidate, a pass that
    // another tab stored, a page the app has left. Ask again, but not for ever.
    if (!again && (page() !== checked || (now.token && !same(now, sent)))) {
      return ask(now, !sent.candidate);
    }
    return leave(answer.waitingRoomUrl);
  }

  /** Goes to the waiting page, in place of this one so that Back does not lead into it again. */
  function leave(where) {
    const own = new URL('/w/' + room, server);
    const named = attempt(() => new URL(where.trim() || own, server)) || own;
    const target = named.origin === server ? named : own;
    const head = server + target.pathname + (target.search ? target.search + '&' : '?');
    wanted = false;
    location.replace(append(head + 'qm_return=', readAddress().href) || own.href);
  }

  // ---- When to check ----------------------------------------------------------------------------

  function begin() {
    wanted = false;
    const done = () => {
      running = undefined;
      return wanted && page() !== checked ? begin() : undefined;
    };
    running = new Promise((resolve) => {
      takeCandidate();
      resolve(ask(candidate ? { token: candidate, key: '', candidate: true } : stored()));
    }).then(done, done);
    return running;
  }

  function check() {
    if (document.prerendering) {
      // Nobody sees the page yet, and a pass can be used only once.
      return new Promise((resolve) => {
        const shown = () => resolve(check());
        document.addEventListener('prerenderingchange', shown, { once: true });
      });
    }
    wanted = true; // a check under way is enough, unless the page has moved on when it ends
    return running || begin();
  }

  function checkIfMoved() {
    if (page() !== checked) check();
  }

  function watchHistory() {
    ['pushState', 'replaceState'].forEach((name) => {
      const original = history[name];
      history[name] = function () {
        const result = original.apply(this, arguments); // the app's errors stay the app's
        checkIfMoved();
        return result;
      };
    });
    window.addEventListener('popstate', checkIfMoved);
  }

  function start() {
    window.QueueManager = {
      check: () => check(),
      token: () => read(TOKEN) || null,
      roomId: room,
      server,
      version: VERSION,
    };
    check();
    // A page brought back by the Back button was frozen, and so was any check it had begun.
    window.addEventListener('pageshow', (event) => {
      if (event.persisted) {
        running = undefined;
        check();
      }
    });
    if (settings.spa) watchHistory();
  }

  attempt(start);
})();
