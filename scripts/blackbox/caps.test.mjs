// Limits by address count places that are held now: every way out of the line gives one back.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { payloadOf, startServer, until } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

let last = 0;
const freshAddress = () => `203.0.113.${(last += 1)}`;

/** Fills the address's places; the next join must be refused. */
async function full(room, ip, cap = 2) {
  const holders = [];
  for (let i = 0; i < cap; i += 1) {
    const visitor = server.visitor({ ip });
    assert.equal((await visitor.join(room)).status, 200);
    holders.push(visitor);
  }
  await assertFull(room, ip);
  return holders;
}

async function assertFull(room, ip, code = 'queue_identity_limit') {
  const refused = await server.visitor({ ip }).join(room);
  assert.deepEqual([refused.status, refused.json.code, refused.cookies.length], [429, code, 0]);
}

const ticketOf = (visitor) => payloadOf(visitor.token).n;
const waysOut = {
  'a pass': (room) => server.flush(room),
  'leaving': (_, [first]) => first.leave(),
  'an eject': (room, [first]) => server.operate('POST', `/rooms/${room}/eject`, { ticket: ticketOf(first) }),
  'a purge': (room) => server.operate('POST', `/rooms/${room}/purge`, {}),
  'a room made anew': async (room) => {
    await server.operate('DELETE', `/rooms/${room}`);
    await server.room({ id: room, queueMaxPerIp: 2 });
  },
};

for (const [name, leave] of Object.entries(waysOut)) {
  test(`C081: ${name} frees the place of its address`, async () => {
    const room = await server.room({ queueMaxPerIp: 2 });
    const ip = freshAddress();
    const holders = await full(room, ip);
    await leave(room, holders);
    const next = await server.visitor({ ip }).join(room);
    assert.equal(next.status, 200, next.text);
  });
}

test('C081: passes that run out, used or not, hold no place in line', async () => {
  const room = await server.room({ queueMaxPerIp: 2, passedTtlSec: 1, sessionTtlSec: 1 });
  const ip = freshAddress();
  const [used, unused] = await full(room, ip);
  await server.flush(room, 2);
  await used.check(room);
  await until(async () => (await unused.status()).json.reason === 'pass_expired', 'the end of the pass');
  await until(async () => (await used.status()).json.expired, 'the end of the session');
  await full(room, ip);
});

test('C081: refused joins and rejoins count nothing', async () => {
  const room = await server.room({ queueMaxPerIp: 2 });
  const ip = freshAddress();
  const [first] = await full(room, ip);
  for (let i = 0; i < 5; i += 1) await assertFull(room, ip);
  for (let i = 0; i < 5; i += 1) assert.equal((await first.join(room)).json.position, 1, 'the own place');
  await first.leave();
  assert.equal((await server.visitor({ ip }).join(room)).status, 200);
  await assertFull(room, ip);
});

test('C081: joins at one moment do not slip past the limit', async () => {
  const room = await server.room({ queueMaxPerIp: 5 });
  const ip = freshAddress();
  const answers = await Promise.all(Array.from({ length: 40 }, () => server.visitor({ ip }).join(room)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 5);
  assert.equal((await server.listed(room)).waiting, 5);
});

test('C082: sixteen places a user before the doors open, one for each owner', async () => {
  const room = await server.room({ opensAt: Date.now() + 3_600_000 });
  const ip = freshAddress();
  const owners = [];
  for (let i = 0; i < 16; i += 1) {
    const visitor = server.visitor({ ip });
    assert.equal((await visitor.join(room)).status, 200);
    owners.push(visitor);
  }
  assert.equal(new Set(owners.map((v) => payloadOf(v.token).q)).size, 16);
  await assertFull(room, ip, 'prequeue_identity_limit');
  const reference = payloadOf(owners[0].token).q;
  for (let i = 0; i < 3; i += 1) assert.equal(payloadOf((await owners[0].join(room)).json.token).q, reference);
  owners[0].token = undefined;
  owners[0].jar.delete(`qm_${room}`);
  const known = await owners[0].join(room);
  assert.equal(payloadOf(known.json.token).q, reference, 'the owner cookie alone brings the reference back');
  await owners[1].leave();
  assert.equal((await server.visitor({ ip }).join(room)).status, 200, 'leaving frees one');
  await assertFull(room, ip, 'prequeue_identity_limit');
});

test('C082: one IPv6 /64 is one user', async () => {
  const room = await server.room({ queueMaxPerIp: 2 });
  for (const ip of ['2001:db8:82:1::1', '2001:db8:82:1:ffff::2']) assert.equal((await server.visitor({ ip }).join(room)).status, 200);
  await assertFull(room, '2001:db8:82:1::3');
  assert.equal((await server.visitor({ ip: '2001:db8:82:2::1' }).join(room)).status, 200);
});
