// What a site gives as options, what visitors send, and what becomes of an outage: with the installed
// package and a stand-in for the queue server.

import assert from 'node:assert/strict';
import net from 'node:net';
import test, { after, before } from 'node:test';

import { mint, send, startServer } from '../../../scripts/blackbox/harness.mjs';
import { answer, fakeQueue, install, site } from './installed.mjs';

let server;
let qm;
let inside;
before(async () => {
  server = await startServer();
  ({ qm, inside } = await install(server));
});
after(() => server?.stop());

const KEY = 'pk_test_1';
const QUEUE = { action: 'queue', reason: 'no_token', waitingRoomUrl: '/w/shop' };
const token = (room = 'shop', n = 1, iat = Date.now()) => mint({ r: room, n, g: 1, iat });

async function shop(t, queue, { handler = (req, res) => res.end('site'), ...options } = {}) {
  const events = [];
  const gate = qm.middleware({
    server: queue.url,
    roomId: 'shop',
    publicApiKey: options.vouch === false ? undefined : KEY,
    onEvent: (event) => events.push(event),
    ...options,
  });
  const reached = [];
  const there = await site(t, (req, res) => {
    gate(req, res, () => {
      reached.push(req);
      handler(req, res);
    });
  });
  return { ...there, events, reached };
}

test('options that cannot work throw, and say which', () => {
  const good = { server: 'https://queue.example.com', roomId: 'shop', publicApiKey: KEY };
  const bad = [
    [undefined, /options must be an object/],
    [{}, /server/],
    [{ ...good, server: 'queue.example.com' }, /server/],
    [{ ...good, server: 'https://queue.example.com/w/' }, /server/],
    [{ ...good, server: 'https://u:p@queue.example.com' }, /server/],
    [{ ...good, server: 'ftp://queue.example.com' }, /server/],
    [{ ...good, roomId: '' }, /roomId/],
    [{ ...good, roomId: 'a b' }, /roomId/],
    [{ ...good, roomId: 'x'.repeat(65) }, /roomId/],
    [{ server: good.server, roomId: 'shop' }, /publicApiKey is missing/],
    [{ ...good, publicApiKey: '' }, /publicApiKey is missing/],
    [{ ...good, publicApiKey: ' \n' }, /publicApiKey is missing/],
    [{ ...good, publicApiKey: 'two words' }, /publicApiKey/],
    [{ ...good, publicApiKey: 7 }, /publicApiKey/],
    [{ ...good, timeoutMs: 0 }, /timeoutMs/],
    [{ ...good, timeoutMs: '2000' }, /timeoutMs/],
    [{ ...good, trustProxy: true }, /trustProxy/],
    [{ ...good, trustProxy: -1 }, /trustProxy/],
    [{ ...good, vouchIp: '203.0.113.7' }, /vouchIp/],
    [{ ...good, cookie: true }, /cookie/],
    [{ ...good, cookie: { secure: 'yes' } }, /cookie\.secure/],
    [{ ...good, cookie: { name: 'a;b' } }, /cookie\.name/],
    [{ ...good, cookie: { domain: 'x' } }, /cookie\.domain/],
    [{ ...good, vouch: 0 }, /vouch/],
    [{ ...good, vouch: false }, /publicApiKey/],
    [{ ...good, onEvent: {} }, /onEvent/],
    [{ ...good, origin: '/shop' }, /origin/],
    [{ ...good, gate: 'Navigations' }, /gate/],
    [{ ...good, trustproxy: 1 }, /no option trustproxy/],
  ];
  for (const [options, message] of bad) {
    for (const make of [qm.middleware, qm.createClient]) {
      assert.throws(
        () => make(options),
        (error) => error instanceof TypeError && message.test(error.message) && !error.message.includes('two words'),
        JSON.stringify(options),
      );
    }
  }
  for (const more of [
    {},
    { server: 'https://queue.example.com/' },
    { publicApiKey: ` ${KEY}\n` },
    { publicApiKey: undefined, vouch: false },
  ]) {
    assert.doesNotThrow(() => qm.middleware({ ...good, ...more }));
  }
});

test('the address vouched for', async (t) => {
  const queue = await fakeQueue(t, (req, res) => answer(res, 200, QUEUE));
  const plain = '127.0.0.1';
  for (const [options, header, expected] of [
    [{}, undefined, plain],
    [{}, '203.0.113.7', plain],
    [{ trustProxy: 1 }, '203.0.113.7', '203.0.113.7'],
    [{ trustProxy: 1 }, '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    [{ trustProxy: 2 }, '192.0.2.9, 203.0.113.7, 198.51.100.1', '203.0.113.7'],
    [{ trustProxy: 2 }, '203.0.113.7', plain],
    [{ trustProxy: 1 }, '203.0.113.7:51234', '203.0.113.7'],
    [{ trustProxy: 1 }, '[2001:db8:1:2::7]:443', '2001:db8:1:2::7'],
    [{ trustProxy: 1 }, '[2001:db8:1:2::7]', '2001:db8:1:2::7'],
    [{ trustProxy: 1 }, '::ffff:203.0.113.7', '203.0.113.7'],
    [{ trustProxy: 1 }, 'unknown', plain],
    [{ trustProxy: 1 }, '_hidden', plain],
    [{ trustProxy: 1 }, '203.0.113.7%eth0', plain],
    [{ trustProxy: 1 }, '203.0.113.7,', plain],
    [{ trustProxy: 1 }, undefined, plain],
    [{ vouchIp: (req) => req.headers['x-real'] }, '203.0.113.7', plain],
    [{ vouchIp: () => '203.0.113.9' }, '203.0.113.7', '203.0.113.9'],
    [{ vouchIp: () => '::ffff:203.0.113.9' }, undefined, '203.0.113.9'],
    [{ vouchIp: () => 'not an address' }, undefined, plain],
    [{ vouchIp: () => Promise.resolve('203.0.113.9') }, undefined, plain],
    [
      {
        vouchIp: () => {
          throw new Error('no');
        },
      },
      undefined,
      plain,
    ],
  ]) {
    const { port } = await shop(t, queue, { ...options });
    const got = await send(port, 'GET', '/', { headers: header === undefined ? {} : { 'X-Forwarded-For': header } });
    assert.equal(got.status, 302, `${JSON.stringify(options)} ${header}`);
    assert.equal(queue.checks.at(-1).query.ip, expected, `${JSON.stringify(options)} ${header}`);
  }
});

test('X-Forwarded-For without a setting is told once', async (t) => {
  const queue = await fakeQueue(t, (req, res) => answer(res, 200, QUEUE));
  const { port, events } = await shop(t, queue, { origin: 'https://shop.example.com' });
  for (let i = 0; i < 3; i += 1) await send(port, 'GET', '/', { headers: { 'X-Forwarded-For': '203.0.113.7' } });
  const warnings = events.filter(({ type }) => type === 'misconfigured');
  assert.equal(warnings.length, 1);
  assert.match(warnings[0].message, /trustProxy/);
});

test('the site is where configuration or a trusted proxy says, never where a raw Host says', async (t) => {
  const queue = await fakeQueue(t, (req, res) => answer(res, 200, QUEUE));
  const returnTo = (got) => new URL(got.headers.location).searchParams.get('qm_return');
  const plain = await shop(t, queue);
  assert.equal(returnTo(await send(plain.port, 'GET', '/a?b=1')), `http://127.0.0.1:${plain.port}/a?b=1`);
  assert.equal(returnTo(await send(plain.port, 'GET', '/a', { headers: { Host: 'evil.example' } })), null);
  assert.equal(returnTo(await send(plain.port, 'GET', 'http://evil.example/a')), `http://127.0.0.1:${plain.port}/a`);
  const set = await shop(t, queue, { origin: 'https://shop.example.com' });
  assert.equal(returnTo(await send(set.port, 'GET', '/a', { headers: { Host: 'evil.example' } })), 'https://shop.example.com/a');
  const proxied = await shop(t, queue, { trustProxy: 1 });
  const headers = { Host: 'shop.example.com', 'X-Forwarded-Proto': 'https', 'X-Forwarded-For': '203.0.113.7' };
  assert.equal(returnTo(await send(proxied.port, 'GET', '/a', { headers })), 'https://shop.example.com/a');
});

test('an outage lets visitors pass, and is told', async (t) => {
  const hanging = await fakeQueue(t, () => {});
  const cut = await fakeQueue(t, (req) => req.socket.destroy());
  const status = (code, body = {}) => fakeQueue(t, (req, res) => answer(res, code, body));
  const broken = await fakeQueue(t, (req, res) => {
    res.writeHead(200, { 'content-length': '1000' });
    res.write('{"action":"pass"');
    setImmediate(() => req.socket.destroy());
  });
  const refused = { url: 'http://127.0.0.1:9' };
  for (const [queue, expected] of [
    [hanging, 'timeout'],
    [cut, 'unreachable'],
    [refused, 'unreachable'],
    [await status(500), 'http-500'],
    [await status(503, { code: 'storage_unavailable' }), 'http-503'],
    [await status(301), 'http-301'],
    [await status(404), 'http-404'],
    [await status(200, '<html>'), 'invalid-response'],
    [await status(200, 'null'), 'invalid-response'],
    [await status(200, { action: 'maybe' }), 'invalid-response'],
    [await status(200, { action: 'pass', filler: 'x'.repeat(70_000) }), 'invalid-response'],
  ]) {
    const { port, events } = await shop(t, queue, { timeoutMs: 300, origin: 'https://shop.example.com' });
    const got = await send(port, 'GET', '/', { headers: { 'X-QM-Failover': 'forged' } });
    assert.deepEqual([got.status, got.text, got.headers['x-qm-failover']], [200, 'site', expected]);
    assert.ok(
      events.some(({ type, failover }) => type === 'failover' && failover === expected),
      JSON.stringify(events),
    );
  }
  const { port, events } = await shop(t, broken, { timeoutMs: 300, origin: 'https://shop.example.com' });
  const got = await send(port, 'GET', '/');
  assert.equal(got.status, 200);
  assert.match(got.headers['x-qm-failover'], /^(unreachable|invalid-response)$/);
  assert.equal(events.length > 0, true);
});

test('busy is no outage', async (t) => {
  for (const [code, body] of [
    [429, { code: 'rate_limited' }],
    [429, ''],
    [503, { code: 'server_saturated' }],
  ]) {
    const queue = await fakeQueue(t, (req, res) => answer(res, code, body));
    const { port, events } = await shop(t, queue, { origin: 'https://shop.example.com' });
    const got = await send(port, 'GET', '/a', { headers: { Cookie: `qm_shop=${token()}; qmk_shop=qk_forged` } });
    assert.deepEqual([got.status, got.headers['x-qm-failover'], got.cookies], [302, undefined, []]);
    assert.equal(got.headers.location, `${queue.url}/w/shop?qm_return=https%3A%2F%2Fshop.example.com%2Fa`);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['busy'],
    );
  }
});

test('unvouched: a key counts at 429 only if this process saw it issued', async (t) => {
  let busy = false;
  const queue = await fakeQueue(t, (req, res) => {
    if (busy) return answer(res, 429, { code: 'rate_limited' });
    return answer(res, 200, { action: 'pass', reason: 'admitted', session: true, ttlSec: 1800, sess: `qk_${'a'.repeat(32)}` });
  });
  const { port } = await shop(t, queue, { vouch: false, origin: 'https://shop.example.com' });
  const admitted = await send(port, 'GET', `/?qm_token=${token()}`, { headers: { 'User-Agent': 'Näive/1' } });
  assert.equal(admitted.status, 302);
  const jar = Object.fromEntries(admitted.cookies.map(({ name, value }) => [name, value]));
  assert.equal(jar.qmk_shop, `qk_${'a'.repeat(32)}`);
  const { query, headers } = queue.checks[0];
  assert.deepEqual([query.ip, query.agent, headers.authorization], [undefined, undefined, undefined]);
  busy = true;
  const ask = (key) => send(port, 'GET', '/', { headers: { Cookie: `qm_shop=${jar.qm_shop}; qmk_shop=${key}` } });
  const held = await ask(jar.qmk_shop);
  assert.deepEqual([held.status, held.headers['x-qm-failover']], [200, undefined]);
  assert.equal(queue.checks.at(-1).headers['x-qm-session'], jar.qmk_shop);
  assert.equal((await ask(`qk_${'b'.repeat(32)}`)).status, 302);
});

test('the memory of keys is bounded in number and time', () => {
  const { KeyMemory, KEYS_MAX, FRESH_MS } = inside('lib/keys.js');
  let now = 0;
  const keys = new KeyMemory(() => now);
  for (let i = 0; i <= KEYS_MAX; i += 1) keys.remember(`k${i}`);
  assert.deepEqual([KEYS_MAX, FRESH_MS], [10_000, 1_800_000]);
  assert.deepEqual([keys.isFresh('k0'), keys.isFresh('k1'), keys.issued.size], [false, true, KEYS_MAX]);
  now = FRESH_MS;
  assert.equal(keys.isFresh('k1'), false);
});

test('two rooms and two hundred visitors do not mix', async (t) => {
  const queue = await fakeQueue(t, (req, res, { query }) => {
    const body = {
      action: 'queue',
      reason: 'waiting',
      waitingRoomUrl: `/w/${query.roomId}?for=${query.ip}`,
      clearToken: Number(query.ip.split('.')[3]) % 2 === 0,
    };
    setTimeout(() => answer(res, 200, body), Math.random() * 20);
  });
  const vouchIp = (req) => req.headers['x-visitor'];
  const shops = [await shop(t, queue, { vouchIp }), await shop(t, queue, { vouchIp, roomId: 'other' })];
  await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      const [room, { port }] = i % 4 < 2 ? ['shop', shops[0]] : ['other', shops[1]];
      const ip = `203.0.113.${i}`;
      const got = await send(port, 'GET', `/${i}`, { headers: { 'X-Visitor': ip, Cookie: `qm_${room}=${token(room, i + 1)}` } });
      const location = new URL(got.headers.location);
      assert.deepEqual([location.pathname, location.searchParams.get('for')], [`/w/${room}`, ip]);
      assert.match(location.searchParams.get('qm_return'), new RegExp(`/${i}$`));
      assert.deepEqual(
        got.cookies.map(({ name }) => name),
        i % 2 === 0 ? [`qm_${room}`] : [],
      );
    }),
  );
});

test('nothing a visitor sends throws or opens the door', async (t) => {
  const queue = await fakeQueue(t, (req, res) => answer(res, 200, QUEUE));
  const { port, server: there, reached } = await shop(t, queue, { origin: 'https://shop.example.com' });
  const long = 'x'.repeat(9000);
  const lines = [
    'GET * HTTP/1.1',
    'GET // HTTP/1.1',
    'GET //evil.example/a?qm_token=x HTTP/1.1',
    'GET /%ff%00?qm_token=%ff%fe HTTP/1.1',
    'GET /\x80\xff?\xff HTTP/1.1',
    'OPTIONS * HTTP/1.1',
    `GET /?qm_token=${long} HTTP/1.1`,
    `GET /${long} HTTP/1.1`,
    'GET /?qm_token=a&qm_token=b&qm%5ftoken=c HTTP/1.1',
    'GET http://u:p@evil.example:99999/a HTTP/1.1',
    'GET /a\\b HTTP/1.1',
    'GET /?qm_return=javascript:1 HTTP/1.1',
    'POST /?qm_token= HTTP/1.1',
  ];
  const cookies = [
    '',
    `qm_shop=${long}`,
    'qm_shop="',
    'qm_shop=\xff\xfe',
    'qm_shop=a.b; qm_shop=b.a',
    `${'a=1;'.repeat(2000)}qm_shop=x`,
    '=;=;;;',
    `qm_shop=${token('other')}`,
  ];
  for (const line of lines) {
    for (const cookie of cookies) {
      const raw = await exchange(
        there.address().port,
        `${line}\r\nHost: shop\r\nCookie: ${cookie}\r\nUser-Agent: \xff${long.slice(0, 300)}\r\nConnection: close\r\n\r\n`,
      );
      assert.match(raw, /^HTTP\/1\.1 (302|503|4\d\d) /, `${line.slice(0, 60)} ${cookie.slice(0, 30)}: ${raw.slice(0, 80)}`);
      const location = /^location: (.*)$/im.exec(raw)?.[1];
      if (location) assert.ok(location.startsWith(`${queue.url}/w/shop`) || /^\/(?!\/)/.test(location), location);
    }
  }
  assert.deepEqual(reached, []);
  for (const { query } of queue.checks) assert.ok(Buffer.byteLength(query.agent) <= 256);
  assert.ok(port > 0);
});

/** Bytes to a fresh socket, and what comes back until it closes. */
function exchange(port, text) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(Buffer.from(text, 'latin1')));
    let raw = '';
    socket.on('data', (part) => {
      raw += part.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(raw));
  });
}

test('pages behind the door stay out of shared caches, whatever the site says', async (t) => {
  const queue = await fakeQueue(t, (req, res) => answer(res, 200, { action: 'pass', reason: 'session' }));
  const handlers = {
    nothing: [(res) => res.end('x'), 'private'],
    set: [(res) => res.setHeader('Cache-Control', 'public, max-age=60').end('x'), 'private, max-age=60'],
    shared: [(res) => res.setHeader('Cache-Control', 's-maxage=60').end('x'), 'private'],
    head: [(res) => res.writeHead(200, { 'cache-control': 'public' }).end('x'), 'private'],
    flat: [(res) => res.writeHead(200, 'Fine', ['Cache-Control', 'public, immutable']).end('x'), 'private, immutable'],
    cdn: [(res) => res.setHeader('CDN-Cache-Control', 'max-age=60').setHeader('Surrogate-Control', 'max-age=60').end('x'), 'private'],
    closed: [(res) => res.writeHead(200, { 'Cache-Control': 'no-store' }).end('x'), 'no-store'],
    forged: [(res) => res.setHeader('X-QM-Failover', 'timeout').end('x'), 'private'],
  };
  const handler = (req, res) => handlers[req.url.slice(1).split('?')[0]][0](res);
  const { port } = await shop(t, queue, { handler, origin: 'https://shop.example.com' });
  for (const [name, [, expected]] of Object.entries(handlers)) {
    const got = await send(port, 'GET', `/${name}`);
    assert.deepEqual([got.status, got.headers['cache-control'], got.headers['x-qm-failover']], [200, expected, undefined], name);
    assert.deepEqual([got.headers['cdn-cache-control'], got.headers['surrogate-control']], [undefined, undefined]);
  }
  const posted = await send(port, 'POST', `/set?qm_token=${token()}`);
  assert.deepEqual([posted.headers['cache-control'], posted.cookies[0].name], ['no-store', 'qm_shop']);
});

test('an own cookie name is used throughout', async (t) => {
  const queue = await fakeQueue(t, (req, res, { query }) => answer(res, 200, query.token ? { action: 'pass', reason: 'session' } : QUEUE));
  const { port } = await shop(t, queue, { cookie: { name: 'pass', secure: false }, origin: 'https://shop.example.com' });
  const held = token();
  const back = await send(port, 'GET', `/?qm_token=${held}`);
  assert.deepEqual([back.cookies[0].name, back.cookies[0].value, back.cookies[0].secure], ['pass', held, undefined]);
  assert.equal((await send(port, 'GET', '/', { headers: { Cookie: `a=1; pass=${held}` } })).status, 200);
  assert.equal((await send(port, 'GET', '/', { headers: { Cookie: `qm_shop=${held}` } })).status, 302);
});

test('a listener that throws or rejects hurts nobody', async (t) => {
  const queue = await fakeQueue(t, (req, res) => answer(res, 500, {}));
  const listeners = [
    () => {
      throw new Error('no');
    },
    async () => {
      throw new Error('no');
    },
    () => null,
  ];
  for (const onEvent of listeners) {
    const { port } = await shop(t, queue, { onEvent, origin: 'https://shop.example.com' });
    assert.equal((await send(port, 'GET', '/')).status, 200);
  }
});
