// Visits through the installed package, with the real queue server: a visitor queues on the waiting
// page's own routes, is released, and comes to a real Express, Connect or node:http site.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';

import { PUBLIC_API_KEY, send, startServer } from '../../../scripts/blackbox/harness.mjs';
import { frameworks, install, site } from './installed.mjs';

const SHOP = 'https://shop.example.com';
let server;
let qm;
let apps;
before(async () => {
  server = await startServer();
  ({ qm } = await install(server));
  apps = await frameworks();
});
after(() => server?.stop());

const options = (roomId, more = {}) => ({
  server: server.url,
  roomId,
  publicApiKey: PUBLIC_API_KEY,
  trustProxy: 1,
  cookie: { secure: true },
  onEvent: () => {},
  ...more,
});

/** Requests of one visitor to the shop, behind the shop's own proxy. */
function shopper(visitor, port) {
  const jar = new Map();
  return async (target, { method = 'GET', headers = {}, body } = {}) => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const got = await send(port, method, target, {
      ip: visitor.ip,
      body,
      headers: {
        'User-Agent': visitor.agent,
        'X-Forwarded-Proto': 'https',
        Host: 'shop.example.com',
        ...(cookie ? { Cookie: cookie } : {}),
        ...headers,
      },
    });
    for (const { name, value, 'max-age': age } of got.cookies) {
      if (Number(age ?? 1) <= 0) jar.delete(name);
      else jar.set(name, value);
    }
    return got;
  };
}

const sites = {
  express: (gate) =>
    apps
      .express()
      .use('/checkout', gate)
      .use((req, res) => res.json({ url: req.originalUrl })),
  'express 4': (gate) =>
    apps
      .express4()
      .use('/checkout', gate)
      .use((req, res) => res.json({ url: req.originalUrl })),
  connect: (gate) =>
    apps
      .connect()
      .use('/checkout', gate)
      .use((req, res) => res.end(JSON.stringify({ url: req.originalUrl ?? req.url }))),
  'node:http': (gate) => (req, res) => {
    const go = () => res.end(JSON.stringify({ url: req.url }));
    if (req.url.startsWith('/checkout')) gate(req, res, go);
    else go();
  },
};

for (const [name, build] of Object.entries(sites)) {
  test(`${name}: a whole visit`, async (t) => {
    const room = await server.room();
    const { port } = await site(t, build(qm.middleware(options(room))));
    const visitor = server.visitor();
    const shop = shopper(visitor, port);

    const open = await shop('/about');
    assert.deepEqual([open.status, open.json], [200, { url: '/about' }], 'the rest of the site is not gated');

    const queued = await shop('/checkout/step?a=1&b=%20');
    assert.equal(queued.status, 302);
    const waiting = new URL(queued.headers.location);
    assert.equal(waiting.origin + waiting.pathname, `${server.url}/w/${room}`);
    assert.equal(waiting.searchParams.get('qm_return'), `${SHOP}/checkout/step?a=1&b=%20`);
    assert.equal(queued.headers['cache-control'], 'no-store');
    assert.equal(queued.text, '');

    await visitor.join(room);
    await server.flush(room);
    const back = await shop(`/checkout/step?a=1&qm_token=${visitor.token}&b=%20`);
    assert.equal(back.status, 302);
    assert.equal(new URL(back.headers.location, SHOP).href, `${SHOP}/checkout/step?a=1&b=%20`);
    assert.equal(back.headers['cache-control'], 'no-store');
    const [cookie] = back.cookies;
    assert.deepEqual([cookie.name, cookie.value], [`qm_${room}`, visitor.token]);
    assert.deepEqual([cookie.httponly, cookie.secure, cookie.samesite, cookie.path], [true, true, 'Lax', '/']);
    assert.equal('domain' in cookie, false);

    const inside = await shop('/checkout/step?a=1&b=%20');
    assert.deepEqual([inside.status, inside.json], [200, { url: '/checkout/step?a=1&b=%20' }]);
    assert.match(inside.headers['cache-control'], /private/);
    assert.equal(inside.headers['x-qm-failover'], undefined);
    const posted = await shop('/checkout/pay', { method: 'POST', body: { card: 1 } });
    assert.equal(posted.status, 200, 'a session may post');

    assert.equal((await visitor.leave()).status, 200);
    const over = await shop('/checkout');
    assert.equal(over.status, 302);
    assert.equal(over.cookies[0]['max-age'], '0', 'the dead cookie is deleted before the redirect');
    const again = await shop('/checkout');
    assert.deepEqual([again.status, again.cookies], [302, []]);
  });
}

test('a pass of another room is taken off the address and the cookie of this room is asked about', async (t) => {
  const [room, other] = [await server.room(), await server.room()];
  const { port } = await site(t, sites.express(qm.middleware(options(room))));
  const visitor = server.visitor();
  const shop = shopper(visitor, port);
  await visitor.join(other);
  const foreign = visitor.token;
  await visitor.join(room);
  await server.flush(room);
  await shop(`/checkout?qm_token=${visitor.token}`);
  const got = await shop(`/checkout?qm_token=${foreign}&x=1`);
  assert.deepEqual([got.status, new URL(got.headers.location, SHOP).href], [302, `${SHOP}/checkout?x=1`]);
  assert.equal((await shop('/checkout?x=1')).status, 200);
});

test('somebody else with the same link stays out', async (t) => {
  const room = await server.room();
  const { port } = await site(t, sites.express(qm.middleware(options(room))));
  const [owner, thief] = [server.visitor(), server.visitor()];
  await owner.join(room);
  await server.flush(room);
  const stolen = await shopper(thief, port)(`/checkout?qm_token=${owner.token}`);
  assert.equal(new URL(stolen.headers.location).pathname, `/w/${room}`);
  assert.equal((await shopper(owner, port)(`/checkout?qm_token=${owner.token}`)).status, 302);
});

test('a POST that brings the pass keeps its body', async (t) => {
  for (const express of [apps.express, apps.express4]) {
    const room = await server.room();
    const app = express().use('/checkout', qm.middleware(options(room)), express.json(), (req, res) => {
      res.json({ url: req.url, original: req.originalUrl, body: req.body, query: req.query });
    });
    const { port } = await site(t, app);
    const visitor = server.visitor();
    await visitor.join(room);
    await server.flush(room);
    const got = await shopper(visitor, port)(`/checkout/pay?qm_token=${visitor.token}&x=1`, { method: 'POST', body: { card: 1 } });
    assert.deepEqual(got.json, { url: '/pay?x=1', original: '/checkout/pay?x=1', body: { card: 1 }, query: { x: '1' } });
    assert.equal(got.cookies[0].value, visitor.token);
    assert.equal(got.headers['cache-control'], 'no-store');
  }
});

test('prefetch and HEAD do not spend a pass', async (t) => {
  const room = await server.room();
  const { port } = await site(t, sites.express(qm.middleware(options(room))));
  const visitor = server.visitor();
  const shop = shopper(visitor, port);
  await visitor.join(room);
  await server.flush(room);
  const target = `/checkout?qm_token=${visitor.token}`;
  for (const [method, headers] of [
    ['GET', { 'Sec-Purpose': 'prefetch;prerender' }],
    ['GET', { Purpose: 'prefetch' }],
    ['HEAD', {}],
  ]) {
    const got = await shop(target, { method, headers });
    assert.deepEqual([got.status, got.headers['cache-control'], got.cookies], [503, 'no-store', []]);
  }
  assert.equal((await server.listed(room)).sessions, 0);
  assert.equal((await shop(target)).status, 302);
  assert.equal((await server.listed(room)).sessions, 1);
});

test('an unknown room is open and told; a wrong key is open and told every time', async (t) => {
  const events = [];
  const onEvent = (event) => events.push(event.type);
  const room = await server.room();
  const unknown = await site(t, sites['node:http'](qm.middleware(options('no-such-room', { onEvent }))));
  const wrong = await site(t, sites['node:http'](qm.middleware(options(room, { onEvent, publicApiKey: 'not-the-key' }))));
  const visitor = server.visitor();
  const first = await shopper(visitor, unknown.port)('/checkout');
  assert.deepEqual([first.status, first.headers['x-qm-failover']], [200, undefined]);
  for (let i = 0; i < 2; i += 1) {
    const got = await shopper(visitor, wrong.port)('/checkout');
    assert.deepEqual([got.status, got.headers['x-qm-failover']], [200, 'http-401']);
  }
  assert.equal(events.filter((type) => type === 'no_room').length, 1);
  assert.equal(events.filter((type) => type === 'key_refused').length, 2);
});

test('createClient gives an API route what it needs for a 401', async (t) => {
  const room = await server.room();
  const client = qm.createClient(options(room));
  const { port } = await site(t, async (req, res) => {
    const decision = await client.check(req);
    res.statusCode = decision.action === 'pass' ? 200 : 401;
    res.end(JSON.stringify({ queued: decision.action !== 'pass', waitingRoomUrl: decision.waitingRoomUrl }));
  });
  const got = await shopper(server.visitor(), port)('/api/cart');
  assert.deepEqual([got.status, got.json], [401, { queued: true, waitingRoomUrl: `${server.url}/w/${room}` }]);
});

test('the rules of the room leave pages out', async (t) => {
  const room = await server.room({ urlPatterns: ['/checkout*', '!/checkout/thanks'] });
  const { port } = await site(
    t,
    apps
      .express()
      .use(qm.middleware(options(room)))
      .use((req, res) => res.end('site')),
  );
  const shop = shopper(server.visitor(), port);
  assert.equal((await shop('/about')).status, 200);
  assert.equal((await shop('/checkout/thanks')).status, 200);
  assert.equal((await shop('/checkout/1')).status, 302);
  const forged = await shop('/about', { headers: { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example, shop.example.com' } });
  assert.equal(forged.status, 200, 'the nearest proxy says where the page is');
  const elsewhere = await shop('/about', { headers: { 'X-Forwarded-Host': 'evil.example' } });
  assert.equal(elsewhere.status, 302, 'a site the room does not know leaves nothing out');
});

test('verification and drift are told once, beside the first request', async (t) => {
  const events = [];
  const told = new Promise((resolve) => {
    const onEvent = (event) => {
      events.push(event);
      if (event.type === 'verify') resolve();
    };
    const gate = qm.middleware(options('no-such-room', { onEvent }));
    site(t, sites['node:http'](gate)).then(({ port }) => shopper(server.visitor(), port)('/checkout'));
  });
  await told;
  assert.match(events.find(({ type }) => type === 'verify').message, /^room_exists: /);
  assert.equal(
    events.some(({ type }) => type === 'drift'),
    false,
    'this is the version the server ships',
  );
});
