// Thousands of random requests (seeded, the seed is printed; QM_SEED repeats a run): nothing a client
// sends makes the server fail, hang, forget its manners, or open a door.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import net from 'node:net';
import { test } from 'node:test';
import { ADMIN_KEY, SHOP, mint, payloadOf, withServer } from './harness.mjs';

const SEED = Number(process.env.QM_SEED ?? randomInt(2 ** 31));
const REQUESTS = 4_000;
const TIME_MS = 12_000;
const WIDTH = 24;
const BUSY = ['sse_capacity', 'prequeue_full', 'storage_unavailable', 'server_saturated'];
const PASSES_WITHOUT_PLACE = ['no_room', 'out_of_scope'];

/** mulberry32: small, and the same everywhere. */
function generator(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  const pick = (list) => list[below(list.length)];
  const some = (list, most) => Array.from({ length: below(most + 1) }, () => pick(list));
  const chance = (p) => next() < p;
  return { below, pick, some, chance };
}

const METHODS = ['GET', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'CONNECT', 'get', 'G\u0000T', 'X'.repeat(60)];
const PATHS = [
  '/api/v1/check', '/api/v1/check', '/api/check', '/api/v1/join', '/api/v1/join', '/api/join', '/api/v1/status', '/events', '/api/v1/events', '/api/v1/leave', '/api/v1/notify',
  '/api/v1/targeting', '/api/v1/verify', '/api/v1/verify.gif', '/api/v1/connectors', '/w/hostile', '/w/', '/w/%00', '/w/..', '/', '/healthz', '/api/v1/health', '/metrics', '/snippet/qm.js',
  '/api/v1/admin/rooms', '/api/v1/admin/health', '/api/v1/admin/rooms/hostile', '/api/v1/admin/rooms/hostile/flush', '/api/v1/admin/rooms/hostile/state', '/api/admin/rooms/%2e%2e/eject',
  '/assets/waiting-x.js', '/__qm/events', '*', '//', '/\u00ff', '/../../etc/passwd', 'http://evil.example/api/v1/check', 'evil.example:443',
];
const NAMES = ['roomId', 'token', 'token', 'token', 'url', 'ip', 'agent', 'sess', 'key', 'targeting', 'nojs', 'lang', 'qm_return', 'origin', 'connector', 'version', 'ticket', 'room%49d', '', '[]', '__proto__'];
const HEADERS = [
  'Origin', 'Referer', 'Cookie', 'Cookie', 'User-Agent', 'Accept', 'Accept-Language', 'Accept-Encoding', 'Authorization', 'X-QM-Session', 'X-Forwarded-For', 'X-Forwarded-Proto',
  'X-Forwarded-Host', 'CF-Connecting-IP', 'If-None-Match', 'If-Modified-Since', 'Range', 'Expect', 'Upgrade', 'Connection', 'Content-Type', 'Content-Encoding', 'Last-Event-ID',
  'Sec-Purpose', 'Sec-Fetch-Dest', 'X-QM-Edge', 'X-QM-CSRF', 'Te', 'Trailer',
];
const FRAMING = ['Host', 'Transfer-Encoding', 'Content-Length'];

function values(room, tokens) {
  return [
    room, room, 'scoped', 'nowhere', ...tokens, ...tokens, 'undefined', 'null', '', '0', '-1', '1e309', 'true', '{}', '[]', '%', '%00', '%ff%fe', '%F0%9F%8E%9F', '\u00ff\u00fe', '\t', 'a b', '..;/', "' or 1=1 --",
    '<script>', '${7*7}', 'x'.repeat(300), 'A'.repeat(3_000), '='.repeat(50), ';'.repeat(200), '"', '"unclosed', `${SHOP}/checkout`, `${SHOP}/`, SHOP, 'https://evil.example', 'javascript:alert(1)',
    'https://[::1', '203.0.113.7', '2001:db8::7', '::ffff:203.0.113.7', '127.0.0.1, 10.0.0.1', 'Bearer x', `Bearer ${ADMIN_KEY}x`, 'Basic Og==', `qk_${'a'.repeat(32)}`, 'prefetch', 'document',
    'bytes=0-', '100-continue', 'websocket', 'chunked', 'gzip', 'close', 'keep-alive, upgrade', '*', 'W/"x"', '18446744073709551616', 'application/json', 'text/html', 'th-TH;q=2,*;q=-1',
  ];
}

/** One request as octets, and whether the client goes away in the middle of it. */
function makeRequest(random, { pool, tokens }, visitor) {
  const { pick, some, chance, below } = random;
  // Mostly what belongs there, or nothing would get behind the first look.
  const fitting = { roomId: ['hostile', 'scoped', 'nowhere'], token: tokens, url: [`${SHOP}/checkout`, `${SHOP}/`, `${SHOP}/checkout/free`], ip: ['203.0.113.7', '::1'] };
  const valueOf = (name) => (fitting[name] && chance(0.8) ? pick(fitting[name]) : pick(pool));
  const parameters = [...(chance(0.7) ? ['roomId', 'url'] : []), ...some(NAMES, 4)];
  const query = parameters.map((name) => `${name}=${chance(0.9) ? encodeURIComponent(valueOf(name)) : pick(pool).replace(/[ \t]/g, '+')}`);
  const path = pick(PATHS);
  const usual = /join|leave|notify|flush|state/.test(path) ? 'POST' : pick(['GET', 'GET', 'HEAD']);
  const method = chance(0.85) ? usual : pick(METHODS);
  const target = path + (query.length ? `?${query.join(chance(0.95) ? '&' : '?')}` : '');
  const lines = chance(0.97) ? ['Host: queue.example.com'] : [];
  for (const name of some(HEADERS, 5)) {
    const cookie = () => `${pick(['qm_', 'qms_', 'qm_dk_', 'x'])}${pick(['hostile', 'scoped', ''])}=${pick(pool)}`;
    lines.push(`${name}: ${name === 'Cookie' ? [cookie(), cookie(), cookie()].join('; ') : pick(pool)}`);
  }
  if (chance(0.05)) lines.push(`${pick(FRAMING)}: ${pick(pool)}`);
  let body = '';
  if (chance(method === 'POST' ? 0.9 : 0.1)) {
    const names = ['roomId', 'token', 'email', 'x'];
    const member = (name) => `"${name}":${chance(0.85) ? JSON.stringify(valueOf(name)) : pick(['5', 'null', '[]', '{"a":{"a":1}}', '1e400', 'tru', ''])}`;
    body = chance(0.85) ? `{${(chance(0.9) ? ['roomId', ...some(names.slice(1), 2)] : some(names, 4)).map(member).join(',')}}` : pick([...pool, '['.repeat(3_000), 'x'.repeat(70_000)]);
    lines.push(chance(0.93) ? `Content-Length: ${Buffer.byteLength(body, 'latin1') + (chance(0.05) ? below(9) - 4 : 0)}` : 'Transfer-Encoding: chunked');
  }
  lines.push(chance(0.5) ? `X-Forwarded-For: ${visitor.ip}` : `X-Forwarded-For: 203.0.113.${below(256)}`, 'Connection: close');
  let octets = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1');
  if (chance(0.04)) for (let i = 0; i < 4; i += 1) octets[below(octets.length)] = below(256);
  const isCut = chance(0.05);
  if (isCut) octets = octets.subarray(0, below(octets.length));
  return { octets, leaves: isCut && chance(0.5) };
}

/** Sends and reads until the answer is whole; of a stream only the head is read. */
function exchange(port, { octets, leaves }) {
  return new Promise((resolve, reject) => {
    const parts = [];
    const socket = net.connect(port, '127.0.0.1', () => (leaves ? socket.write(octets, () => socket.destroy()) : socket.end(octets)));
    socket.setTimeout(15_000, () => {
      socket.destroy();
      reject(new Error('no answer in 15 s'));
    });
    socket.on('data', (part) => {
      parts.push(part);
      if (part.includes('text/event-stream')) socket.destroy();
    });
    socket.on('error', () => {}).on('close', () => resolve(Buffer.concat(parts).toString('latin1')));
  });
}

/** The answers on one connection: status, head and what JSON there is. */
function* answersIn(text) {
  let rest = text;
  while (rest) {
    const end = rest.indexOf('\r\n\r\n');
    assert.ok(/^HTTP\/1\.1 \d{3} /.test(rest) && end > 0, `an answer is HTTP: ${rest}`);
    const [status, head] = [Number(rest.slice(9, 12)), rest.slice(0, end)];
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? (status < 200 ? 0 : Infinity));
    const after = rest.slice(end + 4);
    // The answer to a HEAD announces a body that does not come.
    const body = /^HTTP\/1\.1 \d{3} /.test(after) ? '' : after.slice(0, length);
    const isJson = /^content-type: application\/json/im.test(head) && body;
    yield { status, head, json: isJson ? JSON.parse(Buffer.from(body, 'latin1').toString('utf8')) : undefined };
    rest = after.slice(body.length);
  }
}

function judge({ status, head, json }) {
  if (status === 100) return;
  assert.ok(status < 500 || status === 503, head);
  if (status === 503 && json) assert.ok(BUSY.includes(json.code), json.code);
  if (status >= 400 && json) {
    assert.equal(typeof json.error, 'string', head);
    assert.match(json.code, /^[a-z_]+$/, head);
  }
  assert.match(head, /^x-content-type-options: nosniff/im);
  if (json?.action === 'pass') assert.ok(PASSES_WITHOUT_PLACE.includes(json.reason), json.reason);
  assert.ok(!json?.sess, head);
}

test(`random requests neither break the server nor open a door (QM_SEED=${SEED})`, async (context) => {
  context.diagnostic(`QM_SEED=${SEED}`);
  await withServer({ ADMIN_AUTH_FAIL_PER_MIN: '1000000', SSE_PER_IP: '50' }, async (server) => {
    const room = await server.room({ id: 'hostile', queueMaxPerIp: 100000 });
    await server.room({ id: 'scoped', urlPatterns: ['/checkout*', '!/checkout/free'] });
    const visitor = server.visitor({ ip: '198.18.255.1' });
    await visitor.join(room);
    await server.flush(room);
    const payload = payloadOf(visitor.token);
    const other = server.visitor({ ip: '198.18.255.2' });
    await other.join(room);
    const forged = ['n', 'q', 'g', 'iat'].map((name) => mint({ ...payload, [name]: 2 ** 40 }));
    const tokens = [`${visitor.token}x`, visitor.token.slice(0, -1), visitor.token.toUpperCase(), other.token, ...forged, mint(payload, { secret: 'x'.repeat(32) })];
    const random = generator(SEED);
    const material = { pool: values(room, tokens), tokens };
    const end = Date.now() + TIME_MS;
    let sent = 0;
    const outcomes = {};
    const count = (outcome) => {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    };
    const worker = async () => {
      while (sent < REQUESTS && Date.now() < end) {
        sent += 1;
        const request = makeRequest(random, material, other);
        const text = await exchange(server.port, request);
        if (!text) count('no answer');
        try {
          for (const answer of answersIn(text)) {
            judge(answer);
            count(`${answer.status} ${answer.json?.code ?? answer.json?.reason ?? ''}`.trim());
          }
        } catch (e) {
          throw new Error(`${e.message}\n${text}\nrequest: ${JSON.stringify(request.octets.toString('latin1').slice(0, 1500))}`);
        }
      }
    };
    await Promise.all(Array.from({ length: WIDTH }, worker));
    context.diagnostic(`${sent} requests: ${JSON.stringify(outcomes)}`);
    assert.ok(sent >= 1_000, `only ${sent} requests in time`);
    for (const reached of ['200 no_token', '200 no_room', '401 invalid_token', '400 invalid_room_id', '401 unauthorized', '400 bad_request']) {
      assert.ok(outcomes[reached] > 5, `the mix reaches ${reached}`);
    }
    const health = await server.get('/healthz');
    assert.deepEqual([health.status, health.json.ready], [200, true]);
    assert.match(await server.metrics(), /^qm_admissions_total\{[^}]*\} 0$|^qm_admissions_total 0$/m);
    for (const id of [room, 'scoped']) assert.equal((await server.listed(id)).sessions, 0, id);
    assert.doesNotMatch(server.log, /a fault of ours|panic/);
    assert.equal((await visitor.check(room)).json.reason, 'admitted', 'the pass of the visitor is still good');
  });
});
