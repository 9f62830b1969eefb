// The door check: who passes, for how long, on which pages, and which sites may read the answer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ADMIN_KEY, PUBLIC_API_KEY, SHOP, mint, startServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

async function released(room) {
  const visitor = server.visitor();
  await visitor.join(room);
  await server.flush(room);
  return visitor;
}
const outcome = ({ json }) => [json.action, json.reason];

test('nobody passes without a pass', async () => {
  const room = await server.room();
  const elsewhere = await released(await server.room());
  const stranger = server.visitor();
  const none = await stranger.check(room);
  assert.deepEqual(outcome(none), ['queue', 'no_token']);
  assert.equal(new URL(none.json.waitingRoomUrl, server.url).pathname, `/w/${room}`);
  const forged = mint({ r: room, n: 1, g: 1, iat: Date.now() }, { secret: 'somebody-elses-secret-0123456789abcd' });
  for (const token of ['garbage', forged, elsewhere.token]) {
    assert.deepEqual(outcome(await stranger.check(room, { token })), ['queue', 'no_token']);
  }
  await stranger.join(room);
  assert.deepEqual(outcome(await stranger.check(room)), ['queue', 'waiting']);
});

test('a pass opens the door once and hands out the key', async () => {
  const room = await server.room();
  const visitor = await released(room);
  const first = (await visitor.check(room)).json;
  assert.deepEqual([first.action, first.reason, first.session, first.ttlSec], ['pass', 'admitted', true, 1800]);
  assert.match(first.sess, /^qk_[A-Za-z0-9_-]{32}$/);
  const second = (await visitor.check(room)).json;
  assert.deepEqual([second.action, second.reason, second.sess], ['pass', 'session', undefined]);
  assert.equal((await server.listed(room)).sessions, 1);
});

test('the token alone, or with another key, is turned away', async () => {
  const room = await server.room();
  const visitor = await released(room);
  await visitor.check(room);
  for (const key of [null, `qk_${'x'.repeat(32)}`]) {
    const { json } = await visitor.check(room, { key });
    assert.deepEqual([json.action, json.reason, json.clearToken], ['queue', 'session_elsewhere', true]);
  }
  assert.equal((await visitor.check(room)).json.action, 'pass');
});

test('an eject and a purge end what they name', async () => {
  const room = await server.room();
  const visitor = await released(room);
  await visitor.check(room);
  await server.operate('POST', `/rooms/${room}/eject`, { ticket: 1 });
  assert.deepEqual(outcome(await visitor.check(room)), ['queue', 'ejected']);
  const waiting = server.visitor();
  await waiting.join(room);
  await server.operate('POST', `/rooms/${room}/purge`, {});
  assert.equal((await waiting.status()).json.reason, 'purged');
});

test('an unknown room passes and is counted; a missing id is refused', async () => {
  const visitor = server.visitor();
  assert.deepEqual(outcome(await visitor.check('no-such-room')), ['pass', 'no_room']);
  assert.equal((await server.operate('GET', '/health')).unknownRoomChecks['no-such-room'], 1);
  const missing = await server.get('/api/v1/check');
  assert.deepEqual([missing.status, missing.json.code], [400, 'invalid_room_id']);
});

test('the rules of a room decide which pages are queued', async () => {
  const room = await server.room({ urlPatterns: ['/checkout*', '!/checkout/thank-you'] });
  const visitor = server.visitor();
  const at = async (url) => {
    const { json } = await visitor.check(room, { url });
    return [json.action, json.targeting.scope, json.targeting.rule];
  };
  assert.deepEqual(await at(`${SHOP}/checkout/pay?x=1`), ['queue', 'in', '/checkout*']);
  assert.deepEqual(await at(`${SHOP}/CHECKOUT`), ['queue', 'in', '/checkout*']);
  assert.deepEqual(await at(`${SHOP}/checkout/thank-you`), ['pass', 'out', '/checkout/thank-you']);
  assert.deepEqual(await at(`${SHOP}/about`), ['pass', 'out', null]);
  assert.deepEqual(await at(null), ['queue', 'unknown', null]);
  assert.equal((await server.listed(room)).waiting, 0);
});

test('the rules are public, carry an ETag and change at once', async () => {
  const room = await server.room({ urlPatterns: ['/a*', '!/a/b'] });
  const rules = await server.get(`/api/v1/targeting?roomId=${room}`);
  assert.deepEqual(rules.json.patterns, [
    { pattern: '/a*', action: 'queue' },
    { pattern: '/a/b', action: 'ignore' },
  ]);
  const same = await server.get(`/api/v1/targeting?roomId=${room}`, { headers: { 'If-None-Match': rules.headers.etag } });
  assert.equal(same.status, 304);
  await server.operate('POST', '/rooms', { id: room, urlPatterns: ['/c'] });
  assert.equal((await server.visitor().check(room, { url: `${SHOP}/c` })).json.action, 'queue');
  const bad = await server.admin('POST', '/rooms', { id: room, urlPatterns: ['checkout'] });
  assert.deepEqual([bad.status, bad.json.code], [400, 'invalid_url_patterns']);
});

test('only sites of the room may read the answer', async () => {
  const room = await server.room({ tagOrigins: ['https://landing.example.com'] });
  const allowed = async (origin) => (await server.visitor().check(room, { origin })).headers['access-control-allow-origin'];
  assert.equal(await allowed(SHOP), SHOP);
  assert.equal(await allowed('https://landing.example.com'), 'https://landing.example.com');
  for (const origin of ['https://evil.example', 'http://shop.example.com', 'https://shop.example.com:8443', 'null']) {
    assert.equal(await allowed(origin), undefined, origin);
  }
  const preflight = (origin) =>
    server.request('OPTIONS', `/api/v1/check?roomId=${room}`, {
      headers: { Origin: origin, 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'x-qm-session' },
    });
  const yes = await preflight(SHOP);
  assert.equal(yes.headers['access-control-allow-origin'], SHOP);
  assert.match(yes.headers['access-control-allow-headers'], /x-qm-session/i);
  assert.equal((await preflight('https://evil.example')).headers['access-control-allow-origin'], undefined);
});

test('a connector vouches with a key, and only with a right one', async () => {
  const room = await server.room();
  const visitor = await released(room);
  const vouch = (key, address = visitor.ip) => {
    const query = new URLSearchParams({ roomId: room, token: visitor.token, ip: address, agent: visitor.agent, url: `${SHOP}/` });
    return server.get(`/api/v1/check?${query}`, { headers: key ? { Authorization: `Bearer ${key}` } : {} });
  };
  for (const key of [null, 'wrong-key']) {
    const answer = await vouch(key);
    assert.deepEqual([answer.status, answer.json.code], [401, 'unauthorized']);
  }
  const inQuery = await server.get(`/api/v1/check?roomId=${room}&ip=${visitor.ip}&agent=x&key=${PUBLIC_API_KEY}`);
  assert.deepEqual([inQuery.status, inQuery.json.code], [401, 'credential_in_query']);
  assert.deepEqual(outcome(await vouch(PUBLIC_API_KEY, '203.0.113.250')), ['queue', 'bound_to_other_client']);
  const admitted = await vouch(PUBLIC_API_KEY);
  assert.deepEqual(outcome(admitted), ['pass', 'admitted']);
  assert.equal(admitted.json.sess, undefined, 'a vouched session is bound to the channel');
  assert.deepEqual(outcome(await vouch(PUBLIC_API_KEY)), ['pass', 'session']);
  assert.deepEqual(outcome(await visitor.check(room)), ['queue', 'session_elsewhere']);
  assert.notEqual(PUBLIC_API_KEY, ADMIN_KEY);
});
