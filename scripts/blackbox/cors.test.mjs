// Which sites may read an answer, and what caches may do with it: the same decision for answers,
// refusals and preflights.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SHOP, startServer, withServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const EVIL = 'https://evil.example';
const readable = ({ headers }) => headers['access-control-allow-origin'];
const varies = ({ headers }) => /\borigin\b/i.test(headers.vary ?? '');
const from = (origin, headers = {}) => ({ headers: { Origin: origin, ...headers } });

test('C032: answers about a visitor are stored by no cache, and told apart by origin', async () => {
  const room = await server.room();
  const visitor = server.visitor();
  await visitor.join(room);
  for (const origin of [SHOP, EVIL]) {
    const expected = origin === SHOP ? SHOP : undefined;
    for (const answer of [
      await server.get(`/api/v1/check?roomId=${room}&url=${SHOP}/`, from(origin)),
      await server.get(`/api/v1/status?token=${visitor.token}`, from(origin)),
      await server.post('/api/v1/join', { roomId: room }, from(origin)),
    ]) {
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['cache-control'], 'no-store');
      assert.ok(varies(answer), 'Vary: Origin');
      assert.equal(readable(answer), expected);
      assert.equal(answer.headers['access-control-allow-credentials'], undefined);
    }
  }
  const noOrigin = await server.get(`/api/v1/check?roomId=${room}`);
  assert.ok(varies(noOrigin) && readable(noOrigin) === undefined);
  const verify = await server.get(`/api/v1/verify?roomId=${room}`);
  assert.deepEqual([verify.headers['cache-control'], readable(verify)], ['no-store', '*']);
});

test('C032: refusals of the check are readable where its answers are', async () => {
  await withServer({ CHECK_LIMIT_PER_MIN: '4', JOIN_LIMIT_PER_MIN: '1' }, async (own) => {
    const room = await own.room();
    const ask = (origin, more = '') => own.get(`/api/v1/check?roomId=${room}${more}`, from(origin));
    const keyless = '&ip=203.0.113.1&agent=x';
    for (const [answer, status] of [
      [await ask(SHOP, keyless), 401],
      [await own.request('DELETE', `/api/v1/check?roomId=${room}`, from(SHOP)), 405],
      [await own.get(`/api/v1/check?roomId=${room}&pad=${'x'.repeat(4100)}`, from(SHOP)), 414],
    ]) {
      assert.deepEqual([answer.status, readable(answer), varies(answer)], [status, SHOP, true], `${status}`);
    }
    let busy;
    for (let i = 0; i < 6; i += 1) busy = await ask(SHOP);
    assert.deepEqual([busy.status, busy.json.code, readable(busy), varies(busy)], [429, 'rate_limited', SHOP, true]);
    const stranger = await ask(EVIL);
    assert.deepEqual([stranger.status, readable(stranger), varies(stranger)], [429, undefined, true]);
    const nowhere = await own.get('/api/v1/check?roomId=nowhere', from(EVIL));
    assert.deepEqual([nowhere.status, readable(nowhere)], [429, '*'], 'as its answer would be');
    const status = await own.get(`/api/v1/status?roomId=${room}`, from(SHOP));
    assert.deepEqual([status.status, readable(status), varies(status)], [429, SHOP, true]);
    for (let i = 0; i < 2; i += 1) busy = await own.post('/api/v1/join', { roomId: room }, from(SHOP));
    assert.deepEqual([busy.status, readable(busy), varies(busy)], [429, SHOP, true]);
  });
});

test('C033: the preflight of the key header decides like the check, and costs no quota', async () => {
  await withServer({ CHECK_LIMIT_PER_MIN: '2' }, async (own) => {
    const room = await own.room();
    const preflight = (origin, id = room, method = 'GET') =>
      own.request('OPTIONS', `/api/v1/check?roomId=${id}`, from(origin, { 'Access-Control-Request-Method': method, 'Access-Control-Request-Headers': 'x-qm-session' }));
    for (let i = 0; i < 10; i += 1) {
      const yes = await preflight(SHOP);
      assert.deepEqual([yes.status, readable(yes), varies(yes)], [204, SHOP, true]);
      assert.match(yes.headers['access-control-allow-headers'], /x-qm-session/i);
      assert.match(yes.headers['access-control-allow-methods'], /\bGET\b/);
      assert.doesNotMatch(yes.headers['access-control-allow-methods'], /DELETE|POST/);
      assert.ok(Number(yes.headers['access-control-max-age']) >= 600);
    }
    const no = await preflight(EVIL);
    assert.deepEqual([readable(no), no.headers['access-control-allow-headers'], varies(no)], [undefined, undefined, true]);
    const unknown = await preflight(SHOP, 'nowhere');
    assert.equal(readable(unknown), '*', 'an unknown room lets everybody pass, and must be able to say so');
    assert.equal((await own.get(`/api/v1/check?roomId=${room}`, from(SHOP))).status, 200, 'the quota is whole');
  });
});

test('API-09: no preflight announces what the answer refuses', async () => {
  const room = await server.room();
  const preflight = (path) => server.request('OPTIONS', path, from(SHOP, { 'Access-Control-Request-Method': 'POST' }));
  assert.equal(readable(await preflight(`/api/v1/join?roomId=${room}`)), SHOP);
  for (const path of ['/api/v1/join', `/api/v1/leave?roomId=${room}`, `/api/v1/notify?roomId=${room}`, `/events?roomId=${room}`, '/api/v1/admin/rooms']) {
    assert.equal(readable(await preflight(path)), undefined, path);
  }
});

test('an origin is compared whole, and a refused one opens nothing', async () => {
  const room = await server.room();
  const visitor = server.visitor();
  await visitor.join(room);
  await server.flush(room);
  for (const origin of [
    EVIL, 'null', 'http://shop.example.com', 'https://www.shop.example.com', `${SHOP}:8443`, `${SHOP}.evil.example`, `${SHOP}/`, 'https://SHOP.example.com', `${SHOP}, ${EVIL}`, '*',
  ]) {
    const answer = await visitor.check(room, { origin });
    assert.equal(readable(answer), undefined, origin);
    assert.deepEqual([answer.json.action, answer.json.reason], ['queue', 'origin_not_allowed'], origin);
  }
  const refused = (await server.operate('GET', '/health')).refusedOriginChecks[room];
  assert.ok(Object.values(refused).reduce((a, b) => a + b, 0) >= 10, JSON.stringify(refused));
});
