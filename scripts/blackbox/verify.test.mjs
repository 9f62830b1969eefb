// The check before a deploy (C055): what it may claim, what it must not tell, and that it is limited.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PUBLIC_API_KEY, SHOP, startServer, withServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

async function verify(query, headers = {}) {
  const answer = await server.get(`/api/v1/verify?${new URLSearchParams(query)}`, { headers });
  const checks = Object.fromEntries((answer.json.checks ?? []).map((check) => [check.id, check.status]));
  return { ...answer, ok: answer.json.ok, checks };
}

test('C055: the origin is asked for, then taken from the page, then from the header', async () => {
  const roomId = await server.room();
  assert.notEqual((await verify({ roomId })).checks.tag_origins, 'pass', 'nothing is claimed about a site nobody named');
  for (const [query, headers, expected] of [
    [{ origin: SHOP }, {}, 'pass'],
    [{ origin: `${SHOP}/` }, {}, 'pass'],
    [{ origin: 'HTTPS://Shop.Example.com:443' }, {}, 'pass'],
    [{ url: `${SHOP}/checkout` }, {}, 'pass'],
    [{}, { Origin: SHOP }, 'pass'],
    [{ origin: 'https://other.example', url: `${SHOP}/` }, {}, 'fail'],
    [{ origin: SHOP, url: 'https://other.example/' }, {}, 'pass'],
    [{ url: 'https://other.example/' }, { Origin: SHOP }, 'fail'],
    [{ origin: 'https://www.shop.example.com' }, {}, 'fail'],
    [{ origin: 'http://shop.example.com' }, {}, 'fail'],
    [{ origin: 'shop.example.com' }, {}, 'fail'],
    [{ origin: `${SHOP}/checkout` }, {}, 'fail'],
  ]) {
    const { ok, checks } = await verify({ roomId, ...query }, headers);
    assert.deepEqual([ok, checks.tag_origins], [expected === 'pass', expected], JSON.stringify([query, headers]));
  }
});

test('C055: rooms and keys', async () => {
  const roomId = await server.room();
  const bare = await server.room({ targetUrl: null });
  for (const id of ['', 'a b', 'x'.repeat(65)]) {
    const { status, json } = await server.get(`/api/v1/verify?roomId=${encodeURIComponent(id)}`);
    assert.deepEqual([status, json.code], [400, 'invalid_room_id'], id);
  }
  assert.equal((await server.get('/api/v1/verify')).json.code, 'invalid_room_id');
  const unknown = await verify({ roomId: 'nowhere' });
  assert.deepEqual([unknown.status, unknown.ok, unknown.checks.room_exists], [200, false, 'fail']);
  const nowhereToGo = await verify({ roomId: bare });
  assert.deepEqual([nowhereToGo.ok, nowhereToGo.checks.return_policy], [false, 'fail']);
  for (const [query, headers, expected] of [
    [{}, {}, 'info'],
    [{}, { Authorization: `Bearer ${PUBLIC_API_KEY}` }, 'pass'],
    [{}, { Authorization: 'Bearer wrong' }, 'fail'],
    [{ key: PUBLIC_API_KEY }, {}, 'fail'],
    [{ key: PUBLIC_API_KEY }, { Authorization: `Bearer ${PUBLIC_API_KEY}` }, 'fail'],
  ]) {
    const { ok, checks } = await verify({ roomId, ...query }, headers);
    assert.deepEqual([ok, checks.public_key], [expected !== 'fail', expected], JSON.stringify([query, headers]));
  }
});

test('C055: a report tells neither internal addresses nor other sites', async () => {
  const roomId = await server.room({
    proxyOrigin: 'http://10.1.2.3:3000', returnOrigins: ['https://secret-brand.example'], tagOrigins: ['https://hidden.example'], urlPatterns: ['/private-launch*'],
  });
  for (const path of [`/api/v1/verify?roomId=${roomId}&origin=https://evil.example`, `/api/v1/verify.gif?roomId=${roomId}`]) {
    const { text } = await server.get(path);
    assert.doesNotMatch(text, /10\.1\.2\.3|secret-brand|hidden\.example|private-launch/, path);
  }
});

test('C055: the picture gives the same verdict', async () => {
  const roomId = await server.room();
  const good = await server.get(`/api/v1/verify.gif?roomId=${roomId}&origin=${SHOP}`);
  assert.deepEqual([good.status, good.headers['content-type'], good.headers['cache-control']], [200, 'image/gif', 'no-store']);
  const bad = await server.get(`/api/v1/verify.gif?roomId=${roomId}&origin=https://evil.example`);
  assert.deepEqual([bad.status, bad.json.code, bad.headers['x-qm-verify']], [424, 'verify_failed', 'tag_origins']);
});

test('C055: verifying draws on the quota of checks', async () => {
  await withServer({ CHECK_LIMIT_PER_MIN: '2' }, async (own) => {
    const roomId = await own.room();
    for (let i = 0; i < 2; i += 1) assert.equal((await own.get(`/api/v1/verify?roomId=${roomId}`)).status, 200);
    for (const path of [`/api/v1/verify?roomId=${roomId}`, `/api/v1/verify.gif?roomId=${roomId}`, '/api/v1/connectors', `/api/v1/check?roomId=${roomId}`]) {
      const { status, json } = await own.get(path);
      assert.deepEqual([status, json.code], [429, 'rate_limited'], path);
    }
    assert.match(await own.metrics(), /^qm_rate_limited_checks_total 1$/m, 'only checks count as checks');
  });
});
