// Connectors that vouch for a visitor: addresses, keys, quotas and the channel a session is bound to.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ADMIN_KEY, PUBLIC_API_KEY, SHOP, refusedStart, startServer, until, withServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const outcome = ({ json }) => [json.action, json.reason];

function vouch(own, room, { ip, agent = 'Browser/1', token, query = {}, headers } = {}) {
  const all = { roomId: room, url: `${SHOP}/`, ...query };
  for (const [name, value] of Object.entries({ ip, agent, token })) if (value !== undefined) all[name] = value;
  return own.get(`/api/v1/check?${new URLSearchParams(all)}`, { headers: headers ?? { Authorization: `Bearer ${PUBLIC_API_KEY}` } });
}

async function released(own, room, options) {
  const visitor = own.visitor(options);
  await visitor.join(room);
  await own.flush(room);
  return visitor;
}

test('C038: the 64-bit prefix of the parsed address decides, not its text', async () => {
  const room = await server.room();
  for (const [joined, vouched, reason] of [
    ['2001:db8:1:2::7', '2001:db8:1:2:aaaa:bbbb:cccc:dddd', 'admitted'],
    ['2001:db8:1:2::7', '2001:DB8:0001:0002:0:0:0:9', 'admitted'],
    ['2001:db8:1:2::7', '2001:db8:1:3::7', 'bound_to_other_client'],
    ['2001:db8:1:2::7', '2001:db8:1:20::7', 'bound_to_other_client'],
    ['203.0.113.7', '::ffff:203.0.113.7', 'admitted'],
    ['203.0.113.7', '::ffff:cb00:7107', 'admitted'],
    ['203.0.113.7', '203.0.113.8', 'bound_to_other_client'],
  ]) {
    const visitor = await released(server, room, { ip: joined });
    const answer = await vouch(server, room, { ip: vouched, token: visitor.token });
    assert.equal(answer.json.reason, reason, `${joined} ${vouched}`);
  }
});

test('C040: the other family of a dual-stack visitor costs one bounce, a third address stays refused', async () => {
  const room = await server.room();
  const visitor = await released(server, room, { ip: '2001:db8:40:2::7' });
  const { token } = visitor;
  assert.deepEqual(outcome(await vouch(server, room, { ip: '203.0.113.40', token })), ['queue', 'bound_to_other_client']);
  const thief = server.visitor({ ip: '203.0.113.41' });
  await thief.join(room, { token });
  assert.deepEqual(outcome(await vouch(server, room, { ip: '203.0.113.41', token })), ['queue', 'bound_to_other_client'], 'without the owner cookie');
  visitor.ip = '203.0.113.40';
  await visitor.join(room, { token });
  assert.deepEqual(outcome(await vouch(server, room, { ip: '203.0.113.42', token })), ['queue', 'bound_to_other_client']);
  assert.deepEqual(outcome(await vouch(server, room, { ip: '203.0.113.40', token })), ['pass', 'admitted']);
});

test('C041: only a plain address is one; nothing else passes, and nothing is admitted', async () => {
  const room = await server.room();
  const visitor = await released(server, room, { ip: '203.0.113.7' });
  for (const ip of [
    '203.0.113.7:51234', '[2001:db8:1:2::7]:443', '[2001:db8:1:2::7]', 'fe80::1%eth0', 'unknown', '', '203.0.113.7, 10.0.0.1',
    '203.0.113.007', '0xcb007107', '3405803783', '203.0.113', '203.0.113.7/32', '::ffff:203.0.113.999', '1::2::3', '２０３.0.113.7',
  ]) {
    assert.deepEqual(outcome(await vouch(server, room, { ip, token: visitor.token })), ['queue', 'invalid_voucher'], ip);
  }
  assert.deepEqual(outcome(await vouch(server, room, { token: visitor.token })), ['queue', 'invalid_voucher'], 'agent without ip');
  assert.equal((await server.listed(room)).sessions, 0);
  assert.deepEqual(outcome(await vouch(server, room, { ip: ' 203.0.113.7 ', token: visitor.token })), ['pass', 'admitted']);
});

test('C043: where a key is, how it may be written, and what is counted', async () => {
  const room = await server.room();
  const ask = (headers, query) => vouch(server, room, { ip: '203.0.113.7', headers, query });
  for (const value of [
    `Bearer ${PUBLIC_API_KEY}`, `bearer ${PUBLIC_API_KEY}`, `BEARER   ${PUBLIC_API_KEY} `, `Bearer\t${PUBLIC_API_KEY}`, `Bearer ${ADMIN_KEY}`,
  ]) {
    assert.equal((await ask({ Authorization: value })).status, 200, value);
  }
  assert.equal((await ask({ Authorization: `Bearer ${PUBLIC_API_KEY}` }, { key: 'x' })).status, 200, 'the header counts');
  const refused = [
    {}, { Authorization: '' }, { Authorization: 'Bearer' }, { Authorization: PUBLIC_API_KEY }, { Authorization: `Basic ${PUBLIC_API_KEY}` },
    { Authorization: `Bearer ${PUBLIC_API_KEY}x` }, { Authorization: `Bearer ${PUBLIC_API_KEY.toUpperCase()}` },
    { Authorization: `Bearer ${PUBLIC_API_KEY},${ADMIN_KEY}` }, { 'X-Api-Key': PUBLIC_API_KEY }, { Cookie: `key=${PUBLIC_API_KEY}` },
  ];
  for (const headers of refused) {
    const { status, json } = await ask(headers);
    assert.deepEqual([status, json.code], [401, 'unauthorized'], JSON.stringify(headers));
  }
  const twice = await server.raw(
    `GET /api/v1/check?roomId=${room}&ip=203.0.113.7&agent=x HTTP/1.1\r\nHost: q\r\nConnection: close\r\n` +
      `Authorization: Bearer ${PUBLIC_API_KEY}\r\nAuthorization: Bearer ${PUBLIC_API_KEY}\r\n\r\n`,
  );
  assert.match(twice, /^HTTP\/1\.1 401 /, 'two headers');
  const inQuery = await ask({}, { key: PUBLIC_API_KEY });
  assert.deepEqual([inQuery.status, inQuery.json.code], [401, 'credential_in_query']);
  const health = await server.operate('GET', '/health');
  assert.equal(health.refusedKeyChecks[room], refused.length + 2);
});

test('C043: a refused key is logged once a room, with four characters', async () => {
  await withServer({}, async (own) => {
    const room = await own.room();
    for (const key of ['wxyzSECRETPART', 'abcdOTHERPART']) {
      await vouch(own, room, { ip: '203.0.113.7', headers: { Authorization: `Bearer ${key}` } });
    }
    await until(() => own.log.includes('wxyz'), 'the log line');
    const lines = own.log.split('\n').filter((line) => line.includes(room) && /key/i.test(line));
    assert.equal(lines.length, 1, own.log);
    assert.ok(!/wxyzS|abcd|SECRETPART/.test(own.log));
  });
});

test('C043: keys are trimmed when read, and a control character inside stops the start', async () => {
  await withServer({ PUBLIC_API_KEY: `${PUBLIC_API_KEY}\n, second-public-key-0123456789` }, async (own) => {
    const room = await own.room();
    for (const key of [PUBLIC_API_KEY, 'second-public-key-0123456789']) {
      const answer = await vouch(own, room, { ip: '203.0.113.7', headers: { Authorization: `Bearer ${key}` } });
      assert.equal(answer.status, 200, key);
    }
  });
  const { code, log } = await refusedStart({ PUBLIC_API_KEY: 'half\nand-half-0123456789abcdef' });
  assert.ok(code !== 0 && code !== 'SIGKILL', `${code}`);
  assert.match(log, /PUBLIC_API_KEY/);
  assert.ok(!log.includes('and-half'), 'the key itself is not told');
});

test('C044: a quota belongs to the visitor vouched for, an IPv6 one to the /64', async () => {
  await withServer({ CHECK_LIMIT_PER_MIN: '5' }, async (own) => {
    const room = await own.room();
    const ask = async (ip) => (await vouch(own, room, { ip })).status;
    for (let i = 1; i <= 40; i += 1) assert.equal(await ask(`203.0.113.${i}`), 200, 'one caller for many visitors');
    const noisy = await Promise.all(Array.from({ length: 12 }, () => ask('198.51.100.7')));
    assert.ok(noisy.filter((status) => status === 429).length >= 6, noisy.join());
    const shared = await Promise.all(Array.from({ length: 12 }, (_, i) => ask(`2001:db8:44:1::${i + 1}`)));
    assert.ok(shared.filter((status) => status === 429).length >= 6, shared.join());
    assert.equal(await ask('2001:db8:44:2::1'), 200, 'the next /64');
    const refused = await vouch(own, room, { ip: '198.51.100.7' });
    assert.deepEqual([refused.json.code, refused.json.waitingRoomUrl], ['rate_limited', undefined]);
    assert.match(refused.headers['retry-after'], /^([1-9]|[1-5]\d|60)$/);
  });
});

test('C044: who vouches without a key spends the own quota, not the one of the visitor', async () => {
  await withServer({ CHECK_LIMIT_PER_MIN: '3' }, async (own) => {
    const room = await own.room();
    for (let i = 0; i < 6; i += 1) {
      await own.get(`/api/v1/check?roomId=${room}&ip=203.0.113.7&agent=x`, { ip: '198.51.100.66', headers: { Authorization: 'Bearer wrong' } });
    }
    assert.equal((await vouch(own, room, { ip: '203.0.113.7' })).status, 200);
  });
});

test('C049: a vouched agent of any kind is answered, and the address decides', async () => {
  const room = await server.room();
  for (const agent of [undefined, '', 'x'.repeat(3000), 'Mozilla/5.0 ภาษาไทย', 'a+b%20c', 'blank ', '\u0000\u0007']) {
    const visitor = await released(server, room, { ip: '203.0.113.49' });
    const answer = await vouch(server, room, { ip: '203.0.113.49', agent, token: visitor.token });
    assert.deepEqual(outcome(answer), ['pass', 'admitted'], String(agent).slice(0, 20));
  }
});

test('C049: raw octets in the agent of a browser keep the place', async () => {
  const room = await server.room();
  const visitor = server.visitor({ ip: '203.0.113.50', agent: Buffer.from('Mozilla/5.0 ภาษาไทย').toString('latin1') });
  await visitor.join(room);
  await server.flush(room);
  assert.deepEqual(outcome(await visitor.check(room)), ['pass', 'admitted']);
});

test('C050: the same channel goes on from another network', async () => {
  const room = await server.room();
  const visitor = await released(server, room, { ip: '203.0.113.51' });
  const { token } = visitor;
  assert.deepEqual(outcome(await vouch(server, room, { ip: '203.0.113.51', token })), ['pass', 'admitted']);
  assert.deepEqual(outcome(await vouch(server, room, { ip: '198.51.100.23', token })), ['pass', 'session']);
});
