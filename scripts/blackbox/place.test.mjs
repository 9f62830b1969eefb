// Getting a place and keeping it: join, status, the stream, leaving, cookies and tokens.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mint, payloadOf, startServer, until } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

test('joining gives a place, a token and the two cookies', async () => {
  const room = await server.room();
  const answer = await server.visitor().join(room);
  assert.equal(answer.status, 200, answer.text);
  const { position, ahead, state, token } = answer.json;
  assert.deepEqual([position, ahead, state], [1, 0, 'waiting']);
  const { r, n, g } = payloadOf(token);
  assert.deepEqual([r, n], [room, 1]);
  assert.ok(Number.isInteger(g) && g >= 1, `generation ${g}`);
  const place = answer.cookies.find((c) => c.name === `qm_${room}`);
  const owner = answer.cookies.find((c) => c.name === `qms_${room}`);
  assert.equal(place.value, token);
  assert.equal(place.httponly, undefined, 'the page reads its token');
  assert.equal(owner.httponly, true, 'the proof of ownership is out of reach of scripts');
  for (const c of [place, owner]) assert.deepEqual([c.path, c.samesite, c.secure], ['/', 'Lax', undefined]);
});

test('places follow the order of joining, and a rejoin keeps its own', async () => {
  const room = await server.room();
  const crowd = Array.from({ length: 5 }, () => server.visitor());
  for (const [i, v] of crowd.entries()) assert.equal((await v.join(room)).json.position, i + 1);
  const again = await crowd[2].join(room, { token: crowd[2].token });
  assert.equal(again.json.position, 3);
  assert.equal((await server.listed(room)).waiting, 5);
});

test('a stolen token without the owner cookie is not the place', async () => {
  const room = await server.room();
  const owner = server.visitor();
  await owner.join(room);
  await server.visitor().join(room);
  const thief = server.visitor();
  assert.equal((await thief.join(room, { token: owner.token })).json.position, 3);
  assert.equal((await owner.status()).json.position, 1);
});

test('status tells the place and, once released, where to go', async () => {
  const room = await server.room();
  const [first, second] = [server.visitor(), server.visitor()];
  await first.join(room);
  await second.join(room);
  assert.deepEqual([(await second.status()).json.position, (await second.status()).json.passed], [2, false]);
  await server.flush(room);
  const passed = (await first.status()).json;
  assert.deepEqual([passed.state, passed.passed, passed.position, passed.ahead], ['passed', true, 0, 0]);
  const goal = new URL(passed.redirectUrl);
  assert.equal(goal.origin, 'https://shop.example.com');
  assert.ok(goal.searchParams.get('qm_token'));
  assert.equal((await second.status()).json.position, 1);
});

test('status without a usable token is refused', async () => {
  const room = await server.room();
  const forged = mint({ r: room, n: 1, g: 1, iat: Date.now() }, { secret: 'somebody-elses-secret-0123456789abcd' });
  const old = mint({ r: room, n: 1, g: 1, iat: Date.now() - 90_000_000 });
  const wrongPurpose = mint({ r: room, n: 1, g: 1, iat: Date.now() }, { purpose: 'operator' });
  for (const token of ['', 'garbage', forged, old, wrongPurpose]) {
    const answer = await server.get(`/api/v1/status?token=${token}&roomId=${room}`);
    assert.deepEqual([answer.status, answer.json?.code], [401, 'invalid_token'], token);
  }
});

test('the stream sends the place, its changes and the pass', async () => {
  const room = await server.room();
  const [first, second] = [server.visitor(), server.visitor()];
  await first.join(room);
  await second.join(room);
  const stream = await second.listen(`/events?token=${second.token}`);
  assert.equal(stream.status, 200);
  assert.match(stream.headers['content-type'], /^text\/event-stream/);
  await stream.next((d, event) => event === 'status' && d.position === 2, 'position 2');
  await server.flush(room);
  await stream.next((d) => d.position === 1, 'position 1');
  await server.flush(room);
  const { data } = await stream.next((d) => d.passed, 'the pass');
  assert.match(data.redirectUrl, /[?&]qm_token=/);
  stream.close();
});

test('an operator message reaches an open stream, and goes again', async () => {
  const room = await server.room();
  const visitor = server.visitor();
  await visitor.join(room);
  const stream = await visitor.listen(`/api/v1/events?token=${visitor.token}`);
  await stream.next();
  await server.operate('POST', '/rooms', { id: room, branding: { message: 'Ten minutes more' } });
  const { data } = await stream.next((d) => d.message === 'Ten minutes more', 'the message');
  assert.equal(typeof data.messageAt, 'number');
  assert.equal(typeof data.now, 'number');
  await server.operate('POST', '/rooms', { id: room, branding: {} });
  await stream.next((d) => !d.message, 'no message');
  stream.close();
});

test('leaving gives the place up, for the owner only', async () => {
  const room = await server.room();
  const [first, second] = [server.visitor(), server.visitor()];
  await first.join(room);
  await second.join(room);
  const stranger = server.visitor();
  stranger.token = first.token;
  await stranger.leave();
  assert.equal((await first.status()).json.position, 1, 'a stranger cannot give it up');
  assert.deepEqual((await first.leave()).json, { ok: true });
  const over = (await first.status()).json;
  assert.deepEqual([over.expired, over.reason], [true, 'left']);
  assert.equal((await second.status()).json.position, 1);
});

test('releases follow the rate', async () => {
  const room = await server.room({ ratePerMinute: 600 });
  const crowd = Array.from({ length: 6 }, () => server.visitor());
  const began = Date.now();
  for (const v of crowd) await v.join(room);
  const frames = async () => Promise.all(crowd.map(async (v) => (await v.status()).json.passed));
  await until(async () => (await frames()).every(Boolean), 'everybody through');
  // Ten a second and one second's worth of credit: six are a matter of moments, and never of none.
  assert.ok(Date.now() - began < 5_000, `${Date.now() - began} ms`);
});

test('a paused room keeps its queue, a bypass room lets everybody through', async () => {
  const room = await server.room({ state: 'paused', ratePerMinute: 6000 });
  const visitor = server.visitor();
  const joined = (await visitor.join(room)).json;
  assert.equal(joined.state, 'paused');
  assert.equal(joined.etaSec, null);
  assert.equal((await visitor.status()).json.passed, false);
  await server.operate('POST', `/rooms/${room}/state`, { state: 'bypass' });
  const free = (await server.visitor().join(room)).json;
  assert.deepEqual([free.state, free.passed], ['passed', true]);
  assert.equal(payloadOf(free.token).n, 0);
});

test('an address has a limit of places', async () => {
  const room = await server.room({ queueMaxPerIp: 2 });
  const ip = '203.0.113.77';
  for (let i = 0; i < 2; i += 1) assert.equal((await server.visitor({ ip }).join(room)).status, 200);
  const refused = await server.visitor({ ip }).join(room);
  assert.deepEqual([refused.status, refused.json.code, refused.headers['retry-after']], [429, 'queue_identity_limit', '30']);
  assert.equal(refused.cookies.length, 0);
  assert.equal((await server.visitor().join(room)).status, 200, 'others are not meant');
});

test('bad joins say what is wrong', async () => {
  const room = await server.room();
  for (const [body, status, code] of [
    [{}, 400, 'invalid_room_id'],
    [{ roomId: 7 }, 400, 'invalid_room_id'],
    [{ roomId: 'nowhere' }, 404, 'room_not_found'],
    [{ roomId: room, token: 5 }, 400, 'invalid_token_field'],
    ['{', 400, 'invalid_json'],
    [[], 400, 'invalid_body'],
    [{ roomId: room, padding: 'x'.repeat(70_000) }, 413, 'payload_too_large'],
  ]) {
    const answer = await server.post('/api/v1/join', body);
    assert.deepEqual([answer.status, answer.json?.code], [status, code], JSON.stringify(body).slice(0, 80));
    assert.equal(typeof answer.json.error, 'string');
  }
});
