// Whose place it is: owner cookies, shared tokens, odd cookie headers, rooms made anew.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SHOP, mint, payloadOf, startServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const joinWith = (room, cookie, body = {}) => server.post('/api/v1/join', { roomId: room, ...body }, { headers: { Cookie: cookie } });

test('C076: friends with the token get a place of their own, the owner keeps theirs', async () => {
  const room = await server.room();
  const owner = server.visitor();
  await owner.join(room);
  const bare = server.visitor();
  const other = server.visitor();
  await other.join(room);
  const twin = server.visitor({ ip: owner.ip, agent: owner.agent });
  const places = [];
  for (const friend of [bare, other, twin]) {
    const answer = await friend.join(room, { token: owner.token });
    places.push(answer.json.position);
    assert.ok(friend.jar.has(`qms_${room}`), 'a proof of their own');
    assert.notEqual(friend.jar.get(`qms_${room}`), owner.jar.get(`qms_${room}`));
  }
  assert.deepEqual(places, [3, 2, 4], 'at the back, or where they stood already');
  assert.equal((await owner.join(room, { token: owner.token })).json.position, 1);
});

test('C076: session ids that are none are not kept', async () => {
  const room = await server.room();
  for (const id of ['', 'short', 'x'.repeat(129), 'a b', '"half', 'ก'.repeat(20)]) {
    const answer = await server.post('/api/v1/join', { roomId: room }, { headers: { Cookie: Buffer.from(`qms_${room}=${id}`).toString('latin1') } });
    assert.equal(answer.status, 200, id);
    assert.match(answer.cookies.find((c) => c.name === `qms_${room}`).value, /^[A-Za-z0-9_-]{32}$/, id);
  }
});

test('a session id that somebody planted before the join does not own the new place', async () => {
  const room = await server.room();
  const planted = 'planted-by-an-attacker-00000001';
  const victim = await joinWith(room, `qms_${room}=${planted}`);
  assert.equal(victim.status, 200);
  assert.notEqual(victim.cookies.find((c) => c.name === `qms_${room}`).value, planted);
  const attacker = await joinWith(room, `qms_${room}=${planted}`, { token: victim.json.token });
  assert.equal(attacker.json.position, 2);
});

test('C086: quoted values count, half-quoted ones are junk, and the order of cookies means nothing', async () => {
  const room = await server.room();
  const owner = server.visitor();
  await owner.join(room);
  const [token, id] = [owner.jar.get(`qm_${room}`), owner.jar.get(`qms_${room}`)];
  const forged = mint({ ...payloadOf(token), n: 77 }, { secret: 'somebody-elses-secret-0123456789abcd' });
  const good = `qm_${room}=${token}; qms_${room}=${id}`;
  for (const cookie of [
    good,
    `qms_${room}=${id};qm_${room}=${token}`,
    `qm_${room}="${token}"; qms_${room}="${id}"`,
    `x="a; qm_${room}=FAKE; b"; ${good}`,
    `${good}; x="a; qm_${room}=FAKE; b"`,
    `qm_${room}=${forged}; ${good}; qm_${room}=junk; qms_${room}=0123456789abcdef0123`,
    `qms_${room}=0123456789abcdef0123; qm_${room}=junk; ${good}`,
    `; ;=;==; ${good};;;`,
    `${'y=1; '.repeat(200)}${good}`,
    Buffer.from(`tracker=ภาษาไทย; ${good}`).toString('latin1'),
    `bin=\u00ff\u00fe; ${good}`,
  ]) {
    const answer = await joinWith(room, cookie);
    assert.equal(answer.json.position, 1, cookie.slice(0, 80));
    const status = await server.get(`/api/v1/status?roomId=${room}`, { headers: { Cookie: cookie } });
    assert.deepEqual([status.status, status.json.position], [200, 1], cookie.slice(0, 80));
  }
  for (const cookie of [`qm_${room}="${token}; qms_${room}=${id}x`, `QM_${room}=${token}; QMS_${room}=${id}`]) {
    assert.notEqual((await joinWith(room, cookie)).json.position, 1, cookie.slice(0, 80));
  }
});

test('HOL-51: the room of a status comes from its cookies when there is one, and is asked for otherwise', async () => {
  const visitor = server.visitor();
  const rooms = [await server.room(), await server.room()];
  assert.equal((await visitor.request('GET', '/api/v1/status')).json.code, 'invalid_token');
  await visitor.join(rooms[0]);
  assert.equal((await visitor.request('GET', '/api/v1/status')).json.position, 1);
  await visitor.join(rooms[1]);
  const unclear = await visitor.request('GET', '/api/v1/status');
  assert.deepEqual([unclear.status, unclear.json.code], [400, 'invalid_room_id']);
  assert.equal((await visitor.request('GET', `/api/v1/status?roomId=${rooms[1]}`)).json.position, 1);
  assert.equal((await visitor.request('GET', '/api/v1/status?roomId=a%20b')).json.code, 'invalid_room_id');
});

test('C078: reserved ids are refused, odd but legal ones work', async () => {
  for (const id of [
    'dk_x', 'meta_a', 'notify_1', 'email_', 'console', 'theme', 'lang', 'admin_key', 'autotune', 'autotune_cfg', 'wait_samples', 'hidden_series',
    'selected_room', 'alerts', 'offline_attempts', 'origin_down_attempts', 'a'.repeat(65), 'a.b', 'a b', 'ก', '', 'a/b', 'a\n', 7, null, ['a'],
  ]) {
    const { status, json } = await server.admin('POST', '/rooms', { id });
    assert.deepEqual([status, json.code], [400, 'invalid_room_id'], JSON.stringify(id));
  }
  for (const id of ['dk', 'a'.repeat(64), '-', '_', '__proto__', 'constructor', 'Console', 'DK_x']) {
    await server.room({ id });
    const visitor = server.visitor();
    const joined = await visitor.join(id);
    assert.deepEqual([joined.json.position, visitor.jar.has(`qm_${id}`)], [1, true], id);
    assert.equal((await visitor.check(id)).json.reason, 'waiting', id);
    assert.equal((await visitor.page(`/w/${id}`)).status, 200, id);
    await server.operate('DELETE', `/rooms/${id}`);
  }
});

test('C084: tickets of a room made anew are over everywhere, and the next join is a new place', async () => {
  const room = await server.room();
  const visitor = server.visitor();
  await visitor.join(room);
  const old = visitor.token;
  const stream = await visitor.listen(`/events?token=${old}`);
  await stream.next();
  await server.operate('DELETE', `/rooms/${room}`);
  const reset = { expired: true, reason: 'room_reset', state: 'expired', passed: false };
  assert.deepEqual((await visitor.status(old)).json, reset, 'deleted');
  await stream.next((d) => d.expired && d.reason === 'room_reset', 'the end on the open stream');
  stream.close();
  await server.room({ id: room });
  assert.deepEqual((await visitor.status(old)).json, reset, 'made anew');
  const late = await visitor.listen(`/events?token=${old}`);
  assert.deepEqual((await late.next()).data, reset);
  late.close();
  const check = (await visitor.check(room, { token: old })).json;
  assert.deepEqual([check.action, check.reason, check.clearToken], ['queue', 'room_reset', true]);
  const joined = await visitor.join(room, { token: old });
  assert.equal(joined.json.position, 1);
  assert.ok(payloadOf(joined.json.token).g > payloadOf(old).g);
});

test('C083: unusual browsers get their place, declared automation under enforce does not, and no check is scored', async () => {
  const room = await server.room({ protection: { mode: 'enforce' } });
  const join = (headers) => server.post('/api/v1/join', { roomId: room }, { headers });
  const browser = { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', Accept: '*/*' };
  for (const headers of [browser, { ...browser, 'Accept-Language': 'en' }, { 'User-Agent': 'Lynx/2.9.2', Accept: 'text/html' }, { Accept: '*/*', 'Accept-Language': 'th' }]) {
    assert.equal((await join(headers)).status, 200, JSON.stringify(headers));
  }
  const bot = await join({ 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/130.0.0.0 Safari/537.36' });
  assert.deepEqual([bot.status, bot.json.code, bot.headers['set-cookie']], [403, 'blocked_by_protection', undefined]);
  assert.match(bot.headers['x-qm-protection'], /^score=\d+; mode=enforce$/);
  const check = await server.get(`/api/v1/check?roomId=${room}&url=${SHOP}/`, { headers: { 'User-Agent': 'curl/8.5.0' } });
  assert.deepEqual([check.status, check.json.action], [200, 'queue']);
  await server.operate('POST', '/rooms', { id: room, protection: { mode: 'monitor' } });
  assert.equal((await join({ 'User-Agent': 'curl/8.5.0' })).status, 200);
});
