// A scheduled drop: references before the opening, a draw at it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { payloadOf, startServer, until } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const inAnHour = () => Date.now() + 3_600_000;

test('before the opening there is a reference and no order', async () => {
  const opensAt = inAnHour();
  const room = await server.room({ opensAt });
  const visitor = server.visitor();
  const { state, scheduled, preQueued, preCount, position, ahead, token, ...rest } = (await visitor.join(room)).json;
  assert.deepEqual([state, scheduled, preQueued, preCount, position, ahead], ['scheduled', true, true, 1, null, null]);
  assert.equal(rest.opensAt, opensAt);
  const payload = payloadOf(token);
  assert.equal(payload.n, undefined);
  assert.ok(Number.isInteger(payload.q) && payload.q >= 1);
  const check = (await visitor.check(room)).json;
  assert.deepEqual([check.action, check.reason], ['queue', 'scheduled']);
  const item = await server.listed(room);
  assert.deepEqual([item.state, item.effectiveState, item.preQueue, item.waiting], ['active', 'scheduled', 1, 0]);
});

test('the draw gives every reference one ticket, and nobody else one', async () => {
  const room = await server.room({ opensAt: inAnHour() });
  const crowd = Array.from({ length: 12 }, () => server.visitor());
  for (const v of crowd) await v.join(room);
  await server.operate('POST', `/rooms/${room}/schedule`, { opensAt: null });
  const numbers = [];
  for (const v of crowd) numbers.push(payloadOf((await v.join(room, { token: v.token })).json.token).n);
  assert.deepEqual([...numbers].sort((a, b) => a - b), Array.from({ length: 12 }, (_, i) => i + 1));
  assert.equal((await server.listed(room)).preQueue, 0);
});

test('the doors open by themselves at the set time', async () => {
  const room = await server.room({ opensAt: Date.now() + 1_500, ratePerMinute: 6000 });
  const visitor = server.visitor();
  assert.equal((await visitor.join(room)).json.state, 'scheduled');
  const stream = await visitor.listen(`/api/v1/events?token=${visitor.token}`);
  await stream.next((d) => d.state === 'scheduled', 'the closed gate');
  // The owner of a drawn reference is told to come back for the ticket's token.
  await stream.next((_, event) => event === 'refresh', 'the refresh after the draw');
  await until(() => stream.ended, 'the end of the stream');
  const again = await visitor.listen(`/api/v1/events?token=${visitor.token}`);
  const { data } = await again.next((d) => d.passed, 'the pass after the opening');
  assert.equal(payloadOf(data.token).n, 1);
  again.close();
});

test('the pre-queue has a limit per user, and a purge empties it', async () => {
  const room = await server.room({ opensAt: inAnHour(), preQueueMaxPerIp: 1 });
  const ip = '203.0.113.88';
  const first = server.visitor({ ip });
  await first.join(room);
  const refused = await server.visitor({ ip }).join(room);
  assert.deepEqual([refused.status, refused.json.code], [429, 'prequeue_identity_limit']);
  const purge = await server.operate('POST', `/rooms/${room}/purge`, {});
  assert.deepEqual([purge.purged, purge.preQueue], [1, 1]);
  await until(async () => (await first.status()).json.reason === 'purged', 'the purge shown');
});
