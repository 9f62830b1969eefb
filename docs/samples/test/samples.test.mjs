// The samples for hand-written integrations: each in its own runtime, one table of situations for all of them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PUBLIC_API_KEY, send, startServer } from '../../../scripts/blackbox/harness.mjs';
import { fakeQueue } from '../../../connectors/wordpress/test/site/wordpress.mjs';
import { createGate } from '../gate.mjs';
import { SITE, hosts } from './hosts.mjs';

const TOKEN = 'eyJyIjoiY2hlY2tvdXQifQ.sig';
const OTHER = 'eyJyIjoiY2hlY2tvdXQifQ.other';
const pass = { action: 'pass', reason: 'session' };
const queue = (more) => ({ action: 'queue', reason: 'no_token', waitingRoomUrl: '/w/checkout', ...more });
const PAGE = { status: 200 };
const waits = { status: 302, waiting: true };

// name, request, answers of the queue (status and body, or a word), what comes out, tokens shown
const TABLE = [
  ['no token', {}, [[200, queue()]], waits, [null]],
  ['a session', { cookie: TOKEN }, [[200, pass]], PAGE, [TOKEN]],
  ['a pass arrives', { target: `/checkout?a=1&qm_token=${TOKEN}&b=%2F` }, [[200, pass]], { status: 302, location: `${SITE}/checkout?a=1&b=%2F`, set: TOKEN }, [TOKEN]],
  ['a pass arrives over another', { target: `/checkout?qm_token=${TOKEN}`, cookie: OTHER }, [[200, pass]], { status: 302, location: `${SITE}/checkout`, set: TOKEN }, [TOKEN]],
  ['a pass is refused', { target: `/checkout?qm_token=${TOKEN}` }, [[200, queue({ clearToken: true })]], waits, [TOKEN]],
  ['a pass is refused, the cookie is good', { target: `/checkout?qm_token=${TOKEN}`, cookie: OTHER }, [[200, queue({ clearToken: true })], [200, pass]], { status: 302, location: `${SITE}/checkout` }, [TOKEN, OTHER]],
  ['junk in the address', { target: '/checkout?qm_token=junk', cookie: OTHER }, [[200, pass]], { status: 302, location: `${SITE}/checkout` }, [OTHER]],
  ['a dead cookie', { cookie: TOKEN }, [[200, queue({ clearToken: true })]], { ...waits, set: '' }, [TOKEN]],
  ['a waiting cookie', { cookie: TOKEN }, [[200, queue({ reason: 'waiting' })]], waits, [TOKEN]],
  ['a form', { method: 'POST' }, [[200, queue()]], waits, [null]],
  ['HEAD with a pass', { method: 'HEAD', target: `/checkout?qm_token=${TOKEN}` }, [], { status: 503, noStore: true }, []],
  ['a prefetch with a pass', { target: `/checkout?qm_token=${TOKEN}`, headers: { 'Sec-Purpose': 'prefetch' } }, [], { status: 503, noStore: true }, []],
  ['429', { cookie: TOKEN }, [[429, { code: 'rate_limited' }]], waits, [TOKEN]],
  ['saturated', {}, [[503, { code: 'server_saturated' }]], waits, [null]],
  ...[400, 413, 414].map((status) => [`${status}`, {}, [[status, {}]], waits, [null]]),
  ...[401, 403, 404, 500, 502, 503].map((status) => [`${status}`, {}, [[status, {}]], { ...PAGE, failover: `http-${status}`, loud: status === 401 || status === 403 }, [null]]),
  ...['', '{', 'null', '[]', '"pass"', '{"action":"PASS"}', '<html>'].map((body) => [`body ${body}`, {}, [[200, body]], { ...PAGE, failover: 'invalid-response' }, [null]]),
  ['a redirect', {}, [[302, '', { Location: '/elsewhere' }]], { ...PAGE, failover: 'http-302' }, [null]],
  ['a broken connection', {}, ['break'], { ...PAGE, failover: 'unreachable' }, [null]],
  ['no answer', {}, ['hang'], { ...PAGE, failover: 'timeout' }, [null]],
  ['a dripping answer', {}, ['drip'], { ...PAGE, failover: 'timeout' }, [null]],
  ...['https://evil.example/w/x', '//evil.example', '/\\evil.example', 'javascript:alert(1)', '/w/x\r\nX: y', 7, null].map((named) => [`waiting page ${named}`, {}, [[200, queue({ waitingRoomUrl: named })]], waits, [null]]),
  ['a waiting page with a query', {}, [[200, queue({ waitingRoomUrl: '/w/checkout?lang=th' })]], { ...waits, query: '?lang=th' }, [null]],
];

// nginx bounds the silence of the queue, not the whole answer: njs cannot end a fetch.
const LEFT_OUT = { nginx: ['a dripping answer'] };

for (const [name, start] of Object.entries(hosts)) {
  test(name, async (t) => {
    const fake = await fakeQueue();
    fake.answer = fake.queue;
    const host = await start({ server: fake.url, room: 'checkout', key: 'pk_test_1' });
    t.after(() => Promise.all([host.stop(), fake.stop()]));

    for (const [situation, { method = 'GET', target = '/checkout', cookie, headers = {} }, answers, expect, shown] of TABLE) {
      if (LEFT_OUT[name]?.includes(situation)) continue;
      await t.test(situation, async () => {
        const script = [...answers];
        fake.checks = [];
        fake.answer = (request, response) => {
          const step = script.shift() ?? [200, '{}'];
          if (step === 'break') return request.socket.destroy();
          if (step === 'hang') return undefined;
          if (step === 'drip') {
            response.writeHead(200, { 'Content-Type': 'application/json' });
            const timer = setInterval(() => response.write(' '), 50);
            return response.on('close', () => clearInterval(timer));
          }
          const [status, body, more] = step;
          response.writeHead(status, { 'Content-Type': 'application/json', ...more });
          return response.end(typeof body === 'string' ? body : JSON.stringify(body));
        };
        const began = Date.now();
        const said = host.log.length;
        const all = { 'User-Agent': 'Test "x"', ...headers, ...(cookie ? { Cookie: `a="b; qm_other=x; qm_checkout=${cookie}` } : {}) };
        const answer = await send(host.port, method, target, { headers: all });
        assert.ok(Date.now() - began < 3000, `${Date.now() - began} ms`);
        assert.deepEqual(fake.checks.map(({ query }) => query.get('token')), shown);
        for (const { query, headers: sent } of fake.checks) {
          const url = `${SITE}${target.replace(/[?&]qm_token=[^&]*/, '').replace('/checkout&', '/checkout?')}`;
          assert.deepEqual([query.get('roomId'), query.get('ip'), query.get('agent'), query.get('url')], ['checkout', '127.0.0.1', 'Test "x"', url]);
          assert.equal(sent.authorization, 'Bearer pk_test_1');
        }
        assert.equal(answer.status, expect.status, answer.text);
        assert.equal(answer.headers['x-qm-failover'], expect.failover);
        if (expect.status === 200) assert.match(answer.headers['cache-control'], expect.failover ? /^private, no-store$/ : /^private, no-cache$/);
        else assert.equal(answer.headers['cache-control'], 'no-store');
        assert.equal(/SECRET/.test(answer.text), expect.status === 200);
        if (expect.waiting) assert.equal(answer.headers.location, `${fake.url}/w/checkout${expect.query ? `${expect.query}&` : '?'}qm_return=${encodeURIComponent(`${SITE}${target.split('?')[0]}`)}`);
        if (expect.location) assert.equal(answer.headers.location, expect.location);
        const set = answer.cookies.filter((one) => one.name === 'qm_checkout');
        assert.equal(set.length, expect.set === undefined ? 0 : 1);
        if (expect.set) {
          const [{ value, path, samesite, httponly, secure, 'max-age': age }] = set;
          assert.deepEqual([value, path, samesite, httponly, secure, age], [expect.set, '/', 'Lax', true, true, '86400']);
        } else if (expect.set === '') assert.equal(set[0]['max-age'], '0');
        if (expect.loud) assert.match(host.log.slice(said), /UNPROTECTED/);
      });
    }

    await t.test('nothing a visitor sends breaks it or opens the page', async () => {
      fake.answer = fake.queue;
      const long = 'a'.repeat(3000);
      for (const [target, headers] of [
        [`/checkout?qm_token=${long}`, {}], [`/checkout?${long}`, {}], [`/${long}`, {}], ['/%ff%00?%ff=%', {}], ['/checkout?qm%5Ftoken=x&&=&a', {}], ['/checkout?qm_token[]=x', {}],
        ['/checkout', { Cookie: `qm_checkout=${long}` }], ['/checkout', { Cookie: ';;=;qm_checkout;qm_checkout="' }], ['/checkout', { Cookie: '\xff\xfe=\xff' }], ['/checkout', { 'User-Agent': '%'.repeat(3000) }], ['/checkout', { 'User-Agent': '\xe0\xb8\xff' }],
      ]) {
        const answer = await send(host.port, 'GET', target, { headers });
        if (name === 'nginx' && answer.status === 400 && !/SECRET/.test(answer.text)) continue; // nginx's own answer
        assert.equal(answer.status, 302, `${target.slice(0, 40)} ${JSON.stringify(headers).slice(0, 60)} ${answer.text}`);
        assert.ok(answer.headers.location.startsWith(`${fake.url}/w/checkout`), answer.headers.location);
        assert.ok(fake.checks.at(-1).target.length <= 4096);
      }
      assert.equal(fake.checks.at(-2).query.get('agent'), '%'.repeat(256));
    });

    await t.test('the way through a real queue', async () => {
      const server = await startServer();
      await server.room({ id: 'checkout' });
      const real = await start({ server: server.url, room: 'checkout', key: PUBLIC_API_KEY });
      try {
        const visitor = server.visitor({ ip: '127.0.0.1' });
        const open = (target, token) => send(real.port, 'GET', target, { headers: { 'User-Agent': visitor.agent, ...(token ? { Cookie: `qm_checkout=${token}` } : {}) } });
        assert.equal((await open('/checkout')).headers.location, `${server.url}/w/checkout?qm_return=${encodeURIComponent(`${SITE}/checkout`)}`);
        await visitor.join('checkout');
        assert.equal((await open('/checkout', visitor.token)).status, 302);
        await server.flush('checkout');
        const arrived = await open(`/checkout?qm_token=${visitor.token}`);
        assert.deepEqual([arrived.headers.location, arrived.cookies[0].value], [`${SITE}/checkout`, visitor.token]);
        for (let i = 0; i < 2; i += 1) assert.match((await open('/checkout', visitor.token)).text, /SECRET/);
        await server.operate('POST', '/rooms/checkout/eject', { ticket: 1 });
        const ended = await open('/checkout', visitor.token);
        assert.deepEqual([ended.status, ended.cookies[0]['max-age']], [302, '0']);
        await server.stop();
        assert.equal((await open('/checkout')).headers['x-qm-failover'], 'unreachable');
      } finally {
        await real.stop();
        await server.stop();
      }
    });
  });
}

let fake;
before(async () => {
  fake = await fakeQueue();
  fake.answer = fake.queue;
});
after(() => fake?.stop());

test('the PHP sample without its last argument', async (t) => {
  const host = await hosts.php({ server: fake.url, room: 'checkout', key: 'pk_test_1', withoutSite: true });
  t.after(() => host.stop());
  fake.answer = fake.queue;
  const open = (target) => send(host.port, 'GET', target, { headers: { Host: 'evil.example' } });
  assert.equal((await open('/checkout?a=1')).headers.location, `${fake.url}/w/checkout`);
  assert.equal(fake.checks.at(-1).query.get('url'), null, 'a Host header is no site');
  fake.answer = fake.pass;
  const arrived = await open(`/checkout?qm_token=${TOKEN}`);
  assert.deepEqual([arrived.text, arrived.cookies[0].value], ['SECRET', TOKEN]);
  fake.answer = fake.queue;
});

test('the Node sample as middleware below a path, and for an API', async () => {
  const settings = { server: fake.url, room: 'checkout', key: 'pk_test_1', site: SITE };
  assert.throws(() => createGate({ ...settings, key: ' ' }), /key is required/);
  const http = await import('node:http');
  const server = http.createServer((req, res) => {
    req.originalUrl = req.url; // as Express and Connect do for app.use('/checkout', …)
    req.url = req.url.replace(/^\/checkout/, '') || '/';
    createGate({ ...settings, api: true })(req, res, () => res.end('SECRET'));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const answer = await send(server.address().port, 'GET', '/checkout/pay?x=1');
  assert.deepEqual([answer.status, answer.json], [401, { queued: true, waitingRoomUrl: `${fake.url}/w/checkout` }]);
  assert.equal(fake.checks.at(-1).query.get('url'), `${SITE}/checkout/pay?x=1`);
  await new Promise((resolve) => server.close(resolve));
});
