// What the black-box and the browser tests share: start the built server, speak HTTP to it, behave
// like a visitor. Node 20 or newer, no packages. The binary is QM_BIN or target/release/queue-manager.

import { spawn } from 'node:child_process';
import { createHmac, hkdfSync } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const SECRET = 'black-box-signing-secret-0123456789abcdef';
export const ADMIN_KEY = 'black-box-admin-key-0123456789abcdef';
export const PUBLIC_API_KEY = 'black-box-public-key-0123456789abcdef';
export const SHOP = 'https://shop.example.com';

const BINARY = path.resolve(process.env.QM_BIN ?? path.join(ROOT, 'target/release/queue-manager'));
const START_MS = 15_000;
const STOP_MS = 5_000;
const DEFAULTS = {
  STORE: 'memory',
  HOST: '127.0.0.1',
  SECRET,
  ADMIN_KEY,
  PUBLIC_API_KEY,
  TRUST_PROXY: '1',
  JOIN_LIMIT_PER_MIN: '1000000',
  CHECK_LIMIT_PER_MIN: '1000000',
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks until `ask` gives something truthy; an error counts as a no until the time is up. */
export async function until(ask, what = 'the condition', ms = 10_000) {
  const end = Date.now() + ms;
  for (;;) {
    let last;
    try {
      last = await ask();
      if (last) return last;
    } catch (e) {
      last = e;
    }
    if (Date.now() > end) throw new Error(`${what} did not come true in ${ms} ms; last: ${last?.message ?? JSON.stringify(last)}`);
    await pause(25);
  }
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

// ---- HTTP --------------------------------------------------------------------------------------

function readCookie(line) {
  const [pair, ...attributes] = line.split(/;\s*/);
  const cookie = { name: pair.slice(0, pair.indexOf('=')), value: pair.slice(pair.indexOf('=') + 1) };
  for (const a of attributes) {
    const [name, value = true] = a.split('=');
    cookie[name.toLowerCase()] = value;
  }
  return cookie;
}

/** One request; a status is never an error and redirects are not followed. */
export function send(port, method, target, { headers = {}, body, ip } = {}) {
  const all = { ...headers };
  if (ip) all['X-Forwarded-For'] = ip;
  let bytes;
  if (body !== undefined) {
    // As octets: Node would write the headers in the encoding of a text.
    bytes = Buffer.from(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
    all['Content-Type'] ??= 'application/json';
    all['Content-Length'] ??= bytes.length;
  }
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method, path: target, headers: all, agent: false });
    request.setTimeout(15_000, () => request.destroy(new Error(`no answer: ${method} ${target}`)));
    request.on('error', reject).on('response', (response) => {
      const parts = [];
      response.on('error', reject).on('data', (d) => parts.push(d));
      response.on('end', () => {
        const text = Buffer.concat(parts).toString('utf8');
        let json;
        try {
          json = JSON.parse(text);
        } catch {
          json = undefined;
        }
        const cookies = (response.headers['set-cookie'] ?? []).map(readCookie);
        resolve({ status: response.statusCode, headers: response.headers, text, json, cookies });
      });
    });
    request.end(bytes);
  });
}

/** Writes these octets to a socket of its own and gives all that came back until the other side closed. */
export function raw(port, octets, { half = false } = {}) {
  return new Promise((resolve, reject) => {
    const parts = [];
    const socket = net.connect(port, '127.0.0.1', () => (half ? socket.end(octets) : socket.write(octets)));
    const done = () => resolve(Buffer.concat(parts).toString('latin1'));
    socket.setTimeout(15_000, () => socket.destroy(new Error('the connection stays open')));
    socket.on('data', (d) => parts.push(d)).on('close', done);
    socket.on('error', (e) => (parts.length || /RESET|EPIPE/.test(e.code) ? done() : reject(e)));
  });
}

/** An event stream: `next(wanted)` gives the data of the next event that fits. */
export function listen(port, target, { headers = {}, ip } = {}) {
  return new Promise((resolve, reject) => {
    const all = { Accept: 'text/event-stream', ...headers, ...(ip ? { 'X-Forwarded-For': ip } : {}) };
    const request = http.get({ host: '127.0.0.1', port, path: target, headers: all, agent: false });
    request.on('error', reject).on('response', (response) => {
      const stream = { status: response.statusCode, headers: response.headers, events: [], ended: false, text: '' };
      let read = 0;
      response.setEncoding('utf8').on('data', (part) => {
        stream.text += part;
        const blocks = stream.text.replaceAll('\r\n', '\n').split('\n\n').slice(0, -1);
        for (const block of blocks.slice(read)) {
          const event = /^event: ?(.*)$/m.exec(block)?.[1] ?? 'message';
          const data = [...block.matchAll(/^data: ?(.*)$/gm)].map((m) => m[1]).join('\n');
          if (data) stream.events.push({ event, data: JSON.parse(data) });
        }
        read = blocks.length;
      });
      response.on('close', () => {
        stream.ended = true;
      });
      response.on('error', () => {});
      let seen = 0;
      stream.next = (wanted = () => true, what = 'the event') =>
        until(() => {
          while (seen < stream.events.length) {
            const found = stream.events[seen++];
            if (wanted(found.data, found.event)) return found;
          }
          return null;
        }, what);
      stream.close = () => request.destroy();
      resolve(stream);
    });
  });
}

// ---- the server --------------------------------------------------------------------------------

const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

function launch(env, port) {
  const full = { PATH: process.env.PATH, RUST_BACKTRACE: '1', ...DEFAULTS, PORT: String(port), ...env };
  for (const [name, value] of Object.entries(full)) if (value === null || value === undefined) delete full[name];
  const child = spawn(BINARY, [], { env: full, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  const run = { child, log: '', code: undefined };
  const note = (d) => {
    run.log += d;
  };
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  run.ended = new Promise((resolve) => {
    child.on('error', (e) => {
      note(`${e}\n`);
      run.code ??= -1;
      children.delete(child);
      resolve();
    });
    child.on('close', (code, signal) => {
      run.code ??= code ?? signal;
      children.delete(child);
      resolve();
    });
  });
  return run;
}

async function stop(run, signal = 'SIGTERM') {
  if (run.code === undefined) {
    run.child.kill(signal);
    const timer = setTimeout(() => run.child.kill('SIGKILL'), STOP_MS);
    await run.ended;
    clearTimeout(timer);
  }
  return run.code;
}

export class Server {
  constructor(run, port) {
    Object.assign(this, { run, port, url: `http://127.0.0.1:${port}` });
  }
  get log() {
    return this.run.log;
  }
  stop(signal) {
    return stop(this.run, signal);
  }
  request(method, target, options) {
    return send(this.port, method, target, options);
  }
  get(target, options) {
    return this.request('GET', target, options);
  }
  post(target, body, options = {}) {
    return this.request('POST', target, { ...options, body });
  }
  raw(octets, options) {
    return raw(this.port, octets, options);
  }
  listen(target, options) {
    return listen(this.port, target, options);
  }
  /** Below /api/v1/admin; `key: null` sends none. */
  admin(method, target, body, { key = ADMIN_KEY, headers = {} } = {}) {
    const authorization = key === null ? {} : { Authorization: `Bearer ${key}` };
    return this.request(method, `/api/v1/admin${target}`, { body, headers: { ...authorization, ...headers } });
  }
  /** The same, and anything but success is an error. */
  async operate(method, target, body) {
    const answer = await this.admin(method, target, body);
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${answer.text}`);
    return answer.json;
  }
  /** A new room that releases nobody by itself unless told otherwise; gives its id. */
  async room(fields = {}) {
    const id = fields.id ?? `room-${process.pid}-${(Server.rooms = (Server.rooms ?? 0) + 1)}`;
    await this.operate('POST', '/rooms', { id, ratePerMinute: 0, targetUrl: `${SHOP}/`, ...fields });
    return id;
  }
  /** A check by a connector with the public key, from the socket's own address. */
  vouched(query, headers = {}) {
    return this.get(`/api/v1/check?${query}`, { headers: { Authorization: `Bearer ${PUBLIC_API_KEY}`, ...headers } });
  }
  async listed(id) {
    return (await this.operate('GET', '/rooms')).rooms.find((room) => room.id === id);
  }
  async metrics() {
    return (await this.get('/metrics', { headers: { Authorization: `Bearer ${ADMIN_KEY}` } })).text;
  }
  flush(id, count = 1) {
    return this.operate('POST', `/rooms/${id}/flush`, { count });
  }
  visitor(options) {
    return new Visitor(this, options);
  }
}

export async function startServer(env = {}) {
  // The free port may be taken by somebody else before the server has it: then once more.
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const run = launch(env, port);
    const server = new Server(run, port);
    try {
      await until(async () => run.code !== undefined || (await server.get('/healthz')).status === 200, 'a healthy server', START_MS);
      if (run.code === undefined) return server;
    } catch {
      await stop(run);
    }
    if (attempt === 3 || !/in use/i.test(run.log)) throw new Error(`${BINARY} did not get ready (${run.code}):\n${run.log.slice(-2000)}`);
  }
}

/** A server of its own for `body`, stopped afterwards. */
export async function withServer(env, body) {
  const own = await startServer(env);
  try {
    return await body(own);
  } finally {
    await own.stop();
  }
}

/** For a server that must refuse to start: how it ended and what it said. */
export async function refusedStart(env) {
  const run = launch(env, await freePort());
  const timer = setTimeout(() => run.child.kill('SIGKILL'), START_MS);
  await run.ended;
  clearTimeout(timer);
  return { code: run.code, log: run.log };
}

// ---- visitors ----------------------------------------------------------------------------------

let addresses = 0;

/** A browser: cookies of the queue's host, an address of its own, and what the shop's page stores. */
export class Visitor {
  constructor(server, { ip, agent } = {}) {
    addresses += 1;
    this.server = server;
    this.ip = ip ?? `198.18.${(addresses >> 8) & 255}.${addresses & 255}`;
    this.agent = agent ?? `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0.${addresses}.0 Safari/537.36`;
    this.jar = new Map();
    this.token = undefined;
    this.key = undefined;
  }
  headers(extra = {}) {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join('; ');
    return {
      'User-Agent': this.agent,
      Accept: 'application/json, */*',
      'Accept-Language': 'en',
      'Sec-Fetch-Site': 'same-origin',
      'Sec-Fetch-Mode': 'cors',
      'Sec-Fetch-Dest': 'empty',
      ...(cookie ? { Cookie: cookie } : {}),
      ...extra,
    };
  }
  async request(method, target, { headers, ...rest } = {}) {
    const answer = await this.server.request(method, target, { ip: this.ip, headers: this.headers(headers), ...rest });
    for (const cookie of answer.cookies) {
      const over = Number(cookie['max-age'] ?? 1) <= 0 || (cookie.expires && Date.parse(cookie.expires) < Date.now());
      if (over) this.jar.delete(cookie.name);
      else this.jar.set(cookie.name, cookie.value);
    }
    if (answer.status === 200 && answer.json?.token) this.token = answer.json.token;
    return answer;
  }
  join(room, more = {}) {
    return this.request('POST', '/api/v1/join', { body: { roomId: room, ...more } });
  }
  status(token = this.token) {
    return this.request('GET', `/api/v1/status?token=${encodeURIComponent(token)}`);
  }
  listen(target) {
    return this.server.listen(target, { ip: this.ip, headers: this.headers() });
  }
  leave() {
    return this.request('POST', '/api/v1/leave', { body: { token: this.token } });
  }
  page(target) {
    const headers = { Accept: 'text/html', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document', 'Sec-Fetch-Site': 'none' };
    return this.request('GET', target, { headers });
  }
  /** The door check as the tag on the shop's page asks it: no cookies of the queue, the key in a header. */
  async check(room, { token = this.token, key = this.key, url = `${SHOP}/`, origin = SHOP } = {}) {
    const query = new URLSearchParams({ roomId: room });
    if (token) query.set('token', token);
    if (url) query.set('url', url);
    const headers = { 'User-Agent': this.agent, Accept: '*/*', 'Sec-Fetch-Site': 'cross-site' };
    if (origin) headers.Origin = origin;
    if (key) headers['X-QM-Session'] = key;
    const answer = await this.server.get(`/api/v1/check?${query}`, { ip: this.ip, headers });
    if (answer.json?.sess) this.key = answer.json.sess;
    return answer;
  }
}

// ---- tokens ------------------------------------------------------------------------------------

export const payloadOf = (token) => JSON.parse(Buffer.from(token.split('.')[0], 'base64url').toString('utf8'));

/** Signs any text in the legacy form; `over: 'json'` signs the text instead of its encoding. */
export function sign(json, { secret = SECRET, over = 'text' } = {}) {
  const text = Buffer.from(json).toString('base64url');
  return `${text}.${createHmac('sha256', secret).update(over === 'text' ? text : json).digest('base64url')}`;
}

/** Signs a payload in the legacy form, or in v2 with the key of `purpose`. */
export function mint(payload, { secret = SECRET, purpose } = {}) {
  const derive = (info, bytes) => Buffer.from(hkdfSync('sha256', secret, '', info, bytes));
  const full = purpose ? { ...payload, kid: derive('qm:kid', 4).toString('hex') } : payload;
  const text = Buffer.from(JSON.stringify(full)).toString('base64url');
  const key = purpose ? derive(`qm:${purpose}`, 32) : secret;
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}
