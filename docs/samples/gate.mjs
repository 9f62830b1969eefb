// A waiting room in front of a Node application: Express, Connect or plain node:http. Node 18, no packages.
//
//   const gate = createGate({ server, room, key: process.env.QM_PUBLIC_API_KEY, site: 'https://shop.example.com' });
//   app.use('/checkout', gate);                                          // Express, Connect
//   http.createServer((req, res) => gate(req, res, () => page(req, res)));   // node:http
//
// `site` is the origin visitors see. `address(req)` gives the visitor's address; behind a proxy give your own, and
// never the left-most entry of X-Forwarded-For. `api: true` answers a queued caller with 401 and JSON.

const BUDGET_MS = 2000;
const TOKEN = /^[\w-]+\.[\w-]+$/;
const usable = (text) => (typeof text === 'string' && text.length <= 1024 && TOKEN.test(text) ? text : '');
const encoded = (text) => text.replace(/[^\x21-\x7e]|["<>\\]/g, (c) => encodeURIComponent(c.toWellFormed?.() ?? c));

export function createGate({ server, room, key, site, address = (req) => req.socket.remoteAddress, api = false, log = console.error }) {
  if (!key || !key.trim()) throw new Error('a key is required: without it the queue lets nobody in');
  const origin = new URL(server).origin;
  const secure = site.startsWith('https:') ? '; Secure' : '';
  const own = `${origin}/w/${room}`;
  const cookie = (value, age) => `qm_${room}=${value}; Max-Age=${age}; Path=/; HttpOnly; SameSite=Lax${secure}`;

  /** One check: `{action, reason…}` or `{failover}` or `{busy}`. */
  async function ask(query, ms) {
    try {
      const res = await fetch(`${origin}/api/v1/check?${query}`, {
        headers: { Authorization: `Bearer ${key.trim()}` },
        redirect: 'manual',
        signal: AbortSignal.timeout(ms),
      });
      const text = await res.text();
      const body = await Promise.resolve(text).then(JSON.parse).catch(() => null);
      if (res.status === 429 || [400, 413, 414].includes(res.status) || body?.code === 'server_saturated') return { busy: true };
      if (res.status === 401 || res.status === 403) log(`Queue Manager: ${res.status}, the key is wrong: room ${room} is UNPROTECTED`);
      if (res.status !== 200) return { failover: `http-${res.status}` };
      return body?.action === 'pass' || body?.action === 'queue' ? body : { failover: 'invalid-response' };
    } catch (error) {
      return { failover: error.name === 'TimeoutError' ? 'timeout' : 'unreachable' };
    }
  }

  /** Only the configured server is a place to send anybody to. */
  function waitingPage(named) {
    try {
      const url = new URL(named, origin);
      return /^[\x21-\x7e]+$/.test(named) && url.origin === origin && !url.username ? url : new URL(own);
    } catch {
      return new URL(own);
    }
  }

  function wait(res, named, url) {
    const page = waitingPage(typeof named === 'string' ? named : own);
    res.setHeader('Cache-Control', 'no-store');
    if (api) {
      res.statusCode = 401;
      res.setHeader('Content-Type', 'application/json');
      return res.end(JSON.stringify({ queued: true, waitingRoomUrl: page.href }));
    }
    if (encodeURIComponent(url).length <= 3500) page.search += `${page.search ? '&' : '?'}qm_return=${encodeURIComponent(url)}`;
    res.statusCode = 302;
    res.setHeader('Location', page.href);
    return res.end();
  }

  function read(req) {
    const [path, query = ''] = (req.originalUrl ?? req.url).split('#')[0].split(/\?(.*)/s);
    const name = (pair) => new URLSearchParams(pair).keys().next().value;
    const pairs = query.split('&').filter(Boolean);
    const rest = pairs.filter((pair) => name(pair) !== 'qm_token');
    const brought = pairs.filter((pair) => name(pair) === 'qm_token').map((pair) => usable(new URLSearchParams(pair).get('qm_token')));
    const stored = (req.headers.cookie ?? '').split(';').map((pair) => pair.trim().split(/=(.*)/s)).filter(([n]) => n === `qm_${room}`).map(([, v = '']) => usable(v.replace(/^"(.*)"$/, '$1')));
    const target = path.replace(/^https?:\/\/[^/]*/i, '') || '/';
    return {
      url: site + encoded(target + (rest.length ? `?${rest.join('&')}` : '')),
      carried: brought.length > 0,
      brought: brought.find(Boolean) ?? '',
      stored: stored.find(Boolean) ?? '',
      speculative: req.method === 'HEAD' || /prefetch/i.test(`${req.headers['sec-purpose'] ?? ''} ${req.headers.purpose ?? ''}`),
    };
  }

  return async function gate(req, res, next) {
    const { url, carried, brought, stored, speculative } = read(req);
    if (brought && speculative) {
      res.writeHead(503, { 'Cache-Control': 'no-store' });
      return res.end();
    }
    const until = Date.now() + BUDGET_MS;
    const shown = [...new Set([brought, stored].filter(Boolean))];
    let answer;
    let clear = false;
    for (const token of shown.length ? shown : ['']) {
      const agent = Buffer.from((req.headers['user-agent'] ?? '').trim(), 'latin1').subarray(0, 256).toString('latin1');
      const query = new URLSearchParams({ roomId: room, ip: address(req), agent });
      if (token) query.set('token', token);
      if (encodeURIComponent(url).length <= 2000) query.set('url', url);
      answer = await ask(query, Math.max(100, until - Date.now()));
      if (answer.failover) {
        res.setHeader('X-QM-Failover', answer.failover);
        res.setHeader('Cache-Control', 'private, no-store');
        return next();
      }
      if (answer.action === 'pass') {
        if (token && token === brought) res.setHeader('Set-Cookie', cookie(token, 86400));
        if (!carried || req.method !== 'GET') {
          res.setHeader('Cache-Control', 'private, no-cache');
          return next();
        }
        res.writeHead(302, { Location: url, 'Cache-Control': 'no-store' });
        return res.end();
      }
      if (answer.busy) break;
      clear ||= answer.clearToken === true && token !== '' && token === stored;
    }
    if (clear && !answer.busy) res.setHeader('Set-Cookie', cookie('', 0));
    return wait(res, answer.waitingRoomUrl, url);
  };
}
