// The door in situations from the field: typos, odd addresses, lost answers, stolen passes, changed states.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SHOP, mint, payloadOf, startServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const outcome = ({ json }) => [json.action, json.reason];

async function admitted(room) {
  const visitor = server.visitor();
  await visitor.join(room);
  await server.flush(room);
  assert.deepEqual(outcome(await visitor.check(room)), ['pass', 'admitted']);
  return visitor;
}

test('C023: before the doors open nobody passes, and the check gives no place', async () => {
  const room = await server.room({ opensAt: Date.now() + 3_600_000, ratePerMinute: 6000 });
  const visitor = server.visitor();
  assert.deepEqual(outcome(await visitor.check(room)), ['queue', 'no_token']);
  await visitor.join(room);
  assert.deepEqual(outcome(await visitor.check(room)), ['queue', 'scheduled']);
  const { g } = payloadOf(visitor.token);
  for (const place of [{ n: 1 }, { q: 999 }, { n: 0 }]) {
    const token = mint({ r: room, ...place, g, iat: Date.now() });
    assert.equal((await visitor.check(room, { token })).json.action, 'queue', JSON.stringify(place));
  }
  const item = await server.listed(room);
  assert.deepEqual([item.waiting, item.preQueue, item.sessions, item.nextTicket], [0, 1, 0, 1]);
});

test('C024: ids are exact; unknown ones pass and are counted, impossible ones are refused', async () => {
  await server.room({ id: 'checkout' });
  const ask = (roomId) => server.get(`/api/v1/check?${new URLSearchParams({ roomId, url: `${SHOP}/` })}`);
  assert.deepEqual(outcome(await ask('checkout')), ['queue', 'no_token']);
  assert.deepEqual(outcome(await ask('Checkout')), ['pass', 'no_room']);
  for (const id of ['checkout ', 'checkout#v3', 'x'.repeat(65), '', 'ก', 'a/b', '../checkout', 'checkout\0']) {
    const answer = await ask(id);
    assert.deepEqual([answer.status, answer.json.code], [400, 'invalid_room_id'], id);
  }
  assert.equal((await server.operate('GET', '/health')).unknownRoomChecks.Checkout, 1);
});

test('C030: what is no page address is unknown and queues, whatever the Referer says', async () => {
  const room = await server.room({ urlPatterns: ['/checkout*'] });
  for (const url of [
    '', 'checkout', '/checkout', '/free', '//shop.example.com/free', 'javascript:alert(1)', 'https://', 'https://shop.example.com:99999/free',
    'https://[::1', 'ftp://shop.example.com/free', 'data:text/html,/free', 'about:blank', '%'.repeat(1000),
  ]) {
    const { status, json } = await server.get(`/api/v1/check?${new URLSearchParams({ roomId: room, url })}`, {
      headers: { Referer: `${SHOP}/free` },
    });
    assert.deepEqual([status, json.action, json.targeting.scope], [200, 'queue', 'unknown'], url.slice(0, 60));
  }
  const odd = await server.get(`/api/v1/check?roomId=${room}&url=${SHOP}/%`);
  assert.deepEqual([odd.status, odd.json.targeting.scope], [200, 'out'], 'a browser reads it as a page');
  const twice = await server.get(`/api/v1/check?roomId=${room}&url=${SHOP}/free&url=${SHOP}/checkout`);
  assert.deepEqual(outcome(twice), ['queue', 'ambiguous_request']);
});

test('C036: an admission whose answer was lost costs one bounce, no second wait and no second slot', async () => {
  const room = await server.room({ maxConcurrent: 1 });
  const visitor = server.visitor();
  await visitor.join(room);
  await server.flush(room);
  await visitor.check(room);
  visitor.key = undefined;
  const again = (await visitor.check(room)).json;
  assert.deepEqual([again.action, again.reason, again.clearToken], ['queue', 'session_elsewhere', true]);
  visitor.token = undefined;
  const joined = (await visitor.join(room)).json;
  assert.deepEqual([joined.passed, joined.state], [true, 'passed'], 'the queue cookie proves the place');
  const back = (await visitor.check(room)).json;
  assert.deepEqual([back.action, back.reason, typeof back.sess], ['pass', 'reclaimed', 'string']);
  const item = await server.listed(room);
  assert.deepEqual([item.sessions, item.slotsUsed], [1, 1]);
});

test('C036: checks in the same moment admit once and hand out one key', async () => {
  const room = await server.room();
  const visitor = server.visitor();
  await visitor.join(room);
  await server.flush(room);
  const answers = await Promise.all(Array.from({ length: 20 }, () => visitor.check(room, { key: null })));
  assert.equal(answers.filter(({ json }) => json.sess).length, 1);
  assert.equal(answers.filter(({ json }) => json.reason === 'session_elsewhere').length, 19);
  assert.equal((await server.listed(room)).sessions, 1);
});

test('C050: the key opens from any network, the token without it from none', async () => {
  const room = await server.room();
  const visitor = await admitted(room);
  visitor.ip = '198.51.100.23';
  assert.deepEqual(outcome(await visitor.check(room)), ['pass', 'session']);
  assert.deepEqual(outcome(await visitor.check(room, { key: null })), ['queue', 'session_elsewhere']);
});

test('C052: the key may come in the query; a header decides before it', async () => {
  const room = await server.room();
  const visitor = await admitted(room);
  const ask = (query, header) =>
    server.get(`/api/v1/check?${new URLSearchParams({ roomId: room, token: visitor.token, ...query })}`, {
      ip: visitor.ip,
      headers: { 'User-Agent': visitor.agent, ...(header === undefined ? {} : { 'X-QM-Session': header }) },
    });
  const wrong = `qk_${'x'.repeat(32)}`;
  assert.deepEqual(outcome(await ask({ sess: visitor.key })), ['pass', 'session']);
  assert.deepEqual(outcome(await ask({ sess: wrong }, visitor.key)), ['pass', 'session']);
  for (const [query, header] of [[{ sess: visitor.key }, wrong], [{ sess: visitor.key }, ''], [{}, `${visitor.key} `.repeat(2)], [{ sess: wrong }]]) {
    assert.equal((await ask(query, header)).json.action, 'queue', JSON.stringify([query, header]));
  }
  const twice = await server.get(`/api/v1/check?roomId=${room}&token=${visitor.token}&sess=${visitor.key}&sess=${visitor.key}`);
  assert.deepEqual(outcome(twice), ['queue', 'ambiguous_request']);
});

test('C053: a stolen pass behind the same address opens nothing and leaves the session alone', async () => {
  const room = await server.room({ sessionTtlSec: 1 });
  const visitor = await admitted(room);
  const thief = server.visitor({ ip: visitor.ip, agent: visitor.agent });
  for (const key of [null, `qk_${'y'.repeat(32)}`]) {
    const { json } = await thief.check(room, { token: visitor.token, key });
    assert.deepEqual([json.action, json.reason, json.clearToken], ['queue', 'session_elsewhere', true]);
  }
  const query = new URLSearchParams({ roomId: room, token: visitor.token, ip: visitor.ip, agent: visitor.agent });
  const vouched = await server.vouched(query);
  assert.deepEqual(outcome(vouched), ['queue', 'session_elsewhere']);
  assert.deepEqual(outcome(await visitor.check(room)), ['pass', 'session']);
  // Attempts without proof do not keep an idle session alive.
  const end = Date.now() + 5_000;
  for (;;) {
    const { json } = await thief.check(room, { token: visitor.token, key: null });
    if (json.reason === 'session_expired') break;
    assert.equal(json.reason, 'session_elsewhere');
    assert.ok(Date.now() < end, 'the session ends although somebody keeps asking');
  }
});

test('C096: a change of the room holds from the next check on', async () => {
  const visitor = server.visitor();
  const id = `later-${process.pid}`;
  assert.deepEqual(outcome(await visitor.check(id)), ['pass', 'no_room']);
  await server.room({ id });
  assert.deepEqual(outcome(await visitor.check(id)), ['queue', 'no_token']);
  await server.operate('POST', `/rooms/${id}/state`, { state: 'bypass' });
  assert.deepEqual(outcome(await visitor.check(id)), ['pass', 'bypass']);
  await server.operate('POST', `/rooms/${id}/state`, { state: 'active' });
  assert.deepEqual(outcome(await visitor.check(id)), ['queue', 'no_token']);
  await server.operate('DELETE', `/rooms/${id}`);
  assert.deepEqual(outcome(await visitor.check(id)), ['pass', 'no_room']);
});

test('a bypass pass proves nothing once the room is active again', async () => {
  const room = await server.room({ state: 'bypass' });
  const visitor = server.visitor();
  await visitor.join(room);
  assert.equal(payloadOf(visitor.token).n, 0);
  assert.deepEqual(outcome(await visitor.check(room)), ['pass', 'bypass']);
  await server.operate('POST', `/rooms/${room}/state`, { state: 'active' });
  const { json } = await visitor.check(room);
  assert.deepEqual([json.action, json.reason, json.clearToken], ['queue', 'no_token', true]);
});
