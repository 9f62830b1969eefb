// Tokens as strangers present them: nothing but a canonical one, signed here, for this room, is a place.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SECRET, mint, payloadOf, sign, startServer, withServer } from './harness.mjs';

const PREVIOUS = 'black-box-previous-secret-0123456789abcd';
let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

/** Asks every reader of tokens; none may take it for a place, and the line must not move. */
async function assertNoToken(room, token, what) {
  const encoded = encodeURIComponent(token);
  const status = await server.get(`/api/v1/status?token=${encoded}`);
  assert.deepEqual([status.status, status.json?.code], [401, 'invalid_token'], `status: ${what}`);
  const stream = await server.get(`/events?token=${encoded}`);
  assert.deepEqual([stream.status, stream.json?.code], [401, 'invalid_token'], `events: ${what}`);
  const check = await server.get(`/api/v1/check?roomId=${room}&token=${encoded}`);
  assert.deepEqual([check.status, check.json?.action, check.json?.reason], [200, 'queue', 'no_token'], `check: ${what}`);
  assert.equal(check.json.clearToken, token === '' ? undefined : true, `clearToken: ${what}`);
  assert.deepEqual(check.headers['set-cookie'], undefined);
}

async function passed() {
  const room = await server.room();
  const owner = server.visitor();
  await owner.join(room);
  await server.flush(room);
  return { room, owner, payload: payloadOf(owner.token) };
}

test('C002 C013 C016: spellings of a good token, and junk, are no token', async () => {
  const { room, owner } = await passed();
  const [body, signature] = owner.token.split('.');
  const swapped = `${signature}.${body}`;
  for (const [what, token] of [
    ['padding', `${owner.token}=`],
    ['encoded padding', `${owner.token}%3D`],
    ['blank inside', `${body}.${signature.slice(0, 9)} ${signature.slice(9)}`],
    ['padding inside', `${body}.${signature.slice(0, 9)}=${signature.slice(9)}`],
    ['leading blank', ` ${owner.token}`],
    ['line feed', `${owner.token}\n`],
    ['third part', `${owner.token}.x`],
    ['no signature', `${body}.`],
    ['payload only', body],
    ['halves swapped', swapped],
    ['lower case', owner.token.toLowerCase()],
    ['undefined', 'undefined'],
    ['null', 'null'],
    ['a dot', '.'],
    ['two dots', '..'],
    ['a.b.c', 'a.b.c'],
    ['percent', '%'],
    ['NUL', '\0'],
    ['2 KB', 'A'.repeat(2048)],
    ['empty', ''],
  ]) {
    await assertNoToken(room, token, what);
  }
  for (const raw of ['%', '%zz', '%FF%FE', '%00', `${body}.${signature.replace(/.$/, '%2B')}`, '+']) {
    const check = await server.get(`/api/v1/check?roomId=${room}&token=${raw}`);
    assert.deepEqual([check.status, check.json.action], [200, 'queue'], raw);
  }
  assert.equal((await owner.check(room)).json.reason, 'admitted', 'the pass was not touched');
});

test('C002: the other alphabet of base64 is refused', async () => {
  const { room, payload } = await passed();
  // Some signature has `-` or `_`; every other millisecond makes another one.
  const text = Array.from({ length: 64 }, (_, i) => mint({ ...payload, iat: payload.iat - i })).find((t) => /[-_]/.test(t.split('.')[1]));
  await assertNoToken(room, text.replaceAll('-', '+').replaceAll('_', '/'), 'standard alphabet');
});

test('C004 C005 C014: signed payloads of another shape are no token', async () => {
  const { room, payload } = await passed();
  const { r, n, g, iat } = payload;
  const rest = `"g":${g},"iat":${iat}`;
  for (const text of [
    `{"r":"${r}","n":42,"n":${n},${rest}}`,
    `{"r":"other","r":"${r}","n":${n},${rest}}`,
    `{"r":"${r}","n":${n},"q":7,${rest}}`,
    `{"r":"${r}",${rest}}`,
    `{"r":"${r}","n":${n}.0,${rest}}`,
    `{"r":"${r}","n":"${n}",${rest}}`,
    `{"r":"${r}","n":-1,${rest}}`,
    `{"r":"${r}","n":9007199254740993,${rest}}`,
    `{"r":["${r}"],"n":${n},${rest}}`,
    `{"r":"${r}","n":${n},${rest}} `.replace('} ', '}x'),
    '[]',
    'null',
    '"x"',
    '7',
    '{}',
    '',
    '['.repeat(400),
  ]) {
    await assertNoToken(room, sign(text), text);
  }
  const extra = sign(`{"r":"${r}","n":${n},${rest},"z":1}`);
  assert.equal((await server.get(`/api/v1/status?token=${extra}`)).status, 200, 'a further member is ignored');
});

test('C007 C008 C009: the time of issue is in milliseconds, at most a minute ahead and a day old', async () => {
  const { room, payload } = await passed();
  const at = (iat) => mint({ ...payload, iat });
  const now = Date.now();
  for (const iat of [now - 1, now + 50_000, now - 86_390_000]) {
    assert.equal((await server.get(`/api/v1/status?token=${at(iat)}`)).status, 200, `${iat - now}`);
  }
  for (const iat of [Math.floor(now / 1000), 0, now + 70_000, now - 86_400_001]) await assertNoToken(room, at(iat), `${iat - now}`);
});

test('C009: a life below a minute stops the start', async () => {
  await assert.rejects(startServer({ TOKEN_MAX_AGE_SEC: '30' }), /TOKEN_MAX_AGE_SEC/);
});

test('C007: a token is signed again at half of the shorter life, not before', async () => {
  await withServer({ TOKEN_MAX_AGE_SEC: '600', QUEUE_COOKIE_MAX_AGE_SEC: '120' }, async (own) => {
    const room = await own.room();
    const visitor = own.visitor();
    await visitor.join(room);
    const payload = payloadOf(visitor.token);
    const young = await visitor.status(mint({ ...payload, iat: Date.now() - 50_000 }));
    assert.equal(young.json.token, undefined, 'ten seconds early');
    const due = await visitor.status(mint({ ...payload, iat: Date.now() - 60_001 }));
    const fresh = payloadOf(due.json.token);
    assert.deepEqual([fresh.r, fresh.n, fresh.g], [payload.r, payload.n, payload.g]);
    assert.deepEqual(due.cookies.map((c) => c.name).sort(), [`qm_${room}`, `qms_${room}`]);
    const thief = await own.visitor().status(mint({ ...payload, iat: Date.now() - 60_001 }));
    assert.deepEqual([thief.status, thief.json.token], [200, undefined], 'a token alone is not renewed');
  });
});

test('C011: a visitor token opens nothing of the operators, and theirs is no place', async () => {
  const { room, owner } = await passed();
  for (const target of ['/metrics', '/api/admin/rooms', '/api/admin/health']) {
    assert.equal((await server.get(target, { headers: { Authorization: `Bearer ${owner.token}` } })).status, 401, target);
    assert.equal((await server.get(target, { headers: { Cookie: `qm_console=${owner.token}` } })).status, 401, target);
    assert.equal((await server.get(`${target}?ticket=${owner.token}`)).status, 401, target);
  }
  const monitor = mint({ mid: 'm1', label: 'wall', iat: Date.now(), exp: Date.now() + 60_000 });
  await assertNoToken(room, monitor, 'a monitor token');
  const { payload } = await passed();
  for (const purpose of ['monitor', 'session', 'operator']) await assertNoToken(room, mint(payload, { purpose }), purpose);
});

test('C012: both secrets verify while the key is rotated, only the new one signs', async () => {
  await withServer({ SECRET_PREVIOUS: PREVIOUS, TOKEN_SIGN_V2: '1' }, async (own) => {
    const room = await own.room();
    const visitor = own.visitor();
    await visitor.join(room);
    const payload = payloadOf(visitor.token);
    const { kid, ...plain } = payload;
    const due = { ...plain, iat: Date.now() - 43_300_000 };
    for (const [what, token] of [
      ['previous, legacy', mint(due, { secret: PREVIOUS })],
      ['previous, v2', mint(due, { secret: PREVIOUS, purpose: 'visitor' })],
      ['current, legacy', mint(due)],
    ]) {
      const answer = await visitor.status(token);
      assert.equal(answer.json.position, 1, what);
      const fresh = payloadOf(answer.json.token);
      assert.deepEqual([fresh.n, fresh.kid], [plain.n, kid], what);
    }
  });
  const { payload } = await passed();
  for (const purpose of [undefined, 'visitor']) {
    await assertNoToken(payload.r, mint(payload, { secret: PREVIOUS, purpose }), 'after the rotation');
  }
});

test('C015: the text is signed, not the JSON', async () => {
  const { room, payload } = await passed();
  const text = Buffer.from(JSON.stringify(payload)).toString('base64url');
  await assertNoToken(room, `${text}.${sign(JSON.stringify(payload), { over: 'json' }).split('.')[1]}`, 'form B');
  assert.equal((await server.get(`/api/v1/status?token=${mint(payload, { secret: SECRET })}`)).status, 200, 'form A');
});

test('C019: a pass of another room is no place here, and stays what it was', async () => {
  const { room: vip, owner } = await passed();
  const room = await server.room();
  assert.deepEqual((({ action, reason }) => [action, reason])((await owner.check(room)).json), ['queue', 'no_token']);
  const joined = await owner.join(room, { token: owner.token });
  assert.equal(payloadOf(joined.json.token).r, room);
  assert.equal(joined.json.position, 1);
  assert.equal((await server.listed(vip)).passedLastMin, 1);
  assert.equal((await owner.check(vip, { token: owner.jar.get(`qm_${vip}`) })).json.reason, 'admitted');
});
