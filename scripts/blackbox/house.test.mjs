// Operators, limits, pages, settings and the manners of the API.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ADMIN_KEY, SHOP, payloadOf, refusedStart, startServer, until, withServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

test('health and version need no key', async () => {
  for (const path of ['/healthz', '/api/health', '/api/v1/health', '/api/version']) {
    const answer = await server.get(path);
    assert.equal(answer.status, 200, path);
    assert.deepEqual([answer.json.ok, answer.json.ready, answer.json.apiVersion], [true, true, 'v1'], path);
  }
});

test('both forms of a path answer the same, and errors are JSON with a code', async () => {
  const room = await server.room({ urlPatterns: ['/a*'] });
  for (const [method, path, status, code] of [
    ['GET', `check?roomId=${room}&url=${SHOP}/a`, 200],
    ['GET', `targeting?roomId=${room}`, 200],
    ['GET', 'targeting?roomId=nowhere', 404, 'room_not_found'],
    ['GET', 'status', 401, 'invalid_token'],
    ['DELETE', 'join', 405, 'method_not_allowed'],
    ['GET', 'nothing-here', 404, 'not_found'],
    ['GET', 'admin/rooms', 401, 'unauthorized'],
  ]) {
    const pinned = await server.request(method, `/api/v1/${path}`);
    const alias = await server.request(method, `/api/${path}`);
    assert.deepEqual([pinned.status, pinned.json.code], [status, code], path);
    assert.deepEqual([alias.status, alias.text], [pinned.status, pinned.text], path);
    if (status === 405) assert.match(pinned.headers.allow, /\bPOST\b/);
  }
});

test('the admin API wants its key, and never in the address', async () => {
  for (const key of [null, 'wrong-key']) assert.equal((await server.admin('GET', '/rooms', undefined, { key })).status, 401);
  const inQuery = await server.get(`/api/v1/admin/rooms?key=${ADMIN_KEY}`);
  assert.equal(inQuery.status, 401);
  assert.equal((await server.admin('GET', '/rooms')).status, 200);
});

test('a room is made with its defaults, edited in part and deleted', async () => {
  const made = await server.operate('POST', '/rooms', { id: 'house-1' });
  assert.deepEqual([made.ok, made.created, made.room.name, made.room.rate, made.room.state], [true, true, 'house-1', 60, 'active']);
  const edited = await server.operate('POST', '/rooms', { id: 'house-1', name: 'House', rate: 12 });
  assert.deepEqual([edited.created, edited.room.name, edited.room.rate], [false, 'House', 12]);
  const before = server.visitor();
  await before.join('house-1');
  await server.operate('DELETE', '/rooms/house-1');
  assert.equal(await server.listed('house-1'), undefined);
  assert.equal((await server.admin('POST', '/rooms/house-1/flush', { count: 1 })).json.code, 'room_not_found');
  await server.room({ id: 'house-1' });
  const visitor = server.visitor();
  await visitor.join('house-1');
  assert.ok(payloadOf(visitor.token).g > payloadOf(before.token).g, 'a new generation');
});

test('a bad room is refused whole', async () => {
  const room = await server.room({ name: 'Before' });
  for (const [fields, code] of [
    [{ colour: 'red' }, 'unknown_field'],
    [{ ratePerMinute: -1 }, 'invalid_rate_per_minute'],
    [{ rate: 1, ratePerMinute: 2 }, 'conflicting_field'],
    [{ targetUrl: 'javascript:alert(1)' }, 'invalid_target_url'],
    [{ presenceSec: 1 }, 'invalid_presence_sec'],
    [{ onBackendDown: 'maybe' }, 'invalid_on_backend_down'],
    [{ redacted: true }, 'redacted_shape'],
  ]) {
    const answer = await server.admin('POST', '/rooms', { id: room, name: 'After', ...fields });
    assert.deepEqual([answer.status, answer.json.code], [400, code], JSON.stringify(fields));
  }
  for (const id of ['', 'dk_x', 'console', 'a b', 'x'.repeat(65)]) {
    assert.equal((await server.admin('POST', '/rooms', { id })).json.code, 'invalid_room_id', id);
  }
  assert.equal((await server.listed(room)).name, 'Before');
});

test('the list shows what happens in the room', async () => {
  const room = await server.room({ maxConcurrent: 5 });
  const crowd = Array.from({ length: 4 }, () => server.visitor());
  for (const v of crowd) await v.join(room);
  const flushed = await server.flush(room, 2);
  assert.equal(flushed.released, 2);
  await crowd[0].check(room);
  const item = await until(async () => {
    const found = await server.listed(room);
    return found.sessions === 1 && found;
  }, 'the session in the list');
  assert.deepEqual([item.waiting, item.passedLastMin, item.joinedLastMin, item.slotsUsed], [2, 2, 4, 2]);
  assert.equal(item.estWaitSec, null, 'rate 0 promises nothing');
});

test('joins and checks have their quotas, per address', async () => {
  await withServer({ JOIN_LIMIT_PER_MIN: '2', CHECK_LIMIT_PER_MIN: '2' }, async (own) => {
    const room = await own.room();
    const visitor = own.visitor();
    for (const ask of [() => visitor.join(room), () => visitor.check(room)]) {
      for (let i = 0; i < 2; i += 1) assert.equal((await ask()).status, 200);
      const refused = await ask();
      assert.deepEqual([refused.status, refused.json.code], [429, 'rate_limited']);
      const wait = Number(refused.headers['retry-after']);
      assert.ok(wait >= 1 && wait <= 60, `Retry-After ${wait}`);
    }
    assert.equal((await own.visitor().join(room)).status, 200, 'another address');
  });
});

test('a browser keeps the cookies of at most so many rooms', async () => {
  await withServer({ ROOM_COOKIE_CAP: '2' }, async (own) => {
    const visitor = own.visitor();
    const rooms = [await own.room(), await own.room(), await own.room()];
    for (const room of rooms) await visitor.join(room);
    const kept = [...visitor.jar.keys()].filter((name) => name.startsWith('qm_')).length;
    assert.equal(kept, 2);
    assert.ok(visitor.jar.has(`qm_${rooms[2]}`), 'the newest stays');
    assert.equal(visitor.jar.size, 4, 'the owner cookies go with their tokens');
  });
});

test('the waiting page carries its configuration and no inline script', async () => {
  const name = 'Sale </script><script>alert(1)</script>';
  const room = await server.room({ name });
  const page = await server.visitor().page(`/w/${room}?qm_return=${encodeURIComponent('https://evil.example/')}`);
  assert.equal(page.status, 200);
  assert.match(page.headers['content-type'], /^text\/html/);
  assert.equal(page.headers['x-content-type-options'], 'nosniff');
  assert.match(page.headers['cache-control'], /no-store/);
  assert.ok(!/unsafe-inline/.test(page.headers['content-security-policy']));
  const scripts = [...page.text.matchAll(/<script\b([^>]*)>([\s\S]*?)<\/script>/gi)];
  const config = scripts.filter((s) => /application\/json/.test(s[1])).map((s) => JSON.parse(s[2])).find((c) => c.roomId === room);
  assert.equal(config.name, name);
  assert.equal(config.returnUrl ?? null, null, 'a stranger is no return address');
  for (const [, attributes, body] of scripts) if (!/application\/json/.test(attributes)) assert.equal(body.trim(), '');
  const missing = await server.visitor().page('/w/no-such-room');
  assert.equal(missing.status, 404);
  assert.match(missing.headers['content-type'], /^text\/html/);
});

test('the tag is served to every site and revalidated', async () => {
  const tag = await server.get('/snippet/qm.js', { headers: { 'Accept-Encoding': 'identity' } });
  assert.equal(tag.status, 200);
  assert.match(tag.headers['content-type'], /javascript/);
  assert.equal(tag.headers['access-control-allow-origin'], '*');
  assert.equal(tag.headers['cache-control'], 'no-cache');
  const known = { 'Accept-Encoding': 'identity', 'If-None-Match': tag.headers.etag };
  assert.equal((await server.get('/snippet/qm.js', { headers: known })).status, 304);
});

test('wrong settings stop the start and name themselves', async () => {
  for (const [env, name] of [
    [{ JOIN_LIMIT_PER_MIN: '0' }, 'JOIN_LIMIT_PER_MIN'],
    [{ PORT: 'eighty' }, 'PORT'],
    [{ STORE: 'floppy' }, 'STORE'],
    [{ QM_TYPO: '1' }, 'QM_TYPO'],
    [{ ADMIN_KEY: null, HOST: '0.0.0.0' }, 'ADMIN_KEY|HOST'],
    [{ QM_ENV: 'production' }, 'STORE'],
  ]) {
    const { code, log } = await refusedStart(env);
    assert.ok(code !== 0 && code !== 'SIGKILL', `${name}: ended with ${code}`);
    assert.match(log, new RegExp(name));
  }
});

test('a signal ends open streams and the process, with 0', async () => {
  const own = await startServer();
  const room = await own.room();
  const visitor = own.visitor();
  await visitor.join(room);
  const stream = await visitor.listen(`/events?token=${visitor.token}`);
  await stream.next();
  assert.equal(await own.stop(), 0, own.log.slice(-500));
  await until(() => stream.ended, 'the end of the stream');
});
