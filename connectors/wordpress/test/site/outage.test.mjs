// What the site does when the queue server is down, slow, busy or broken, and what it asks.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { HOME, Site, fakeQueue } from './wordpress.mjs';

let queue;
let site;
before(async () => {
  [queue, site] = await Promise.all([fakeQueue(), Site.start()]);
  const page = await site.save({ server: `${queue.url}/`, room: 'checkout', key: 'pk_test_1', is_wanted: '1' });
  assert.equal(page.state, 'success');
});
after(async () => {
  await site?.stop();
  await queue?.stop();
});
beforeEach(() => {
  queue.checks = [];
  queue.answer = queue.queue;
  site.behave();
});

const waiting = (target) => `${queue.url}/w/checkout?qm_return=${encodeURIComponent(HOME + target)}`;
function assertOpen(answer, failover) {
  assert.deepEqual([answer.status, answer.headers['x-qm-failover']], [200, failover]);
  assert.match(answer.text, /SECRET/);
  assert.equal(answer.headers['cache-control'], 'private, no-cache, no-store');
  assert.match(answer.text, /<!-- cached: no -->/);
  assert.ok(answer.ms < 3500, `${answer.ms} ms`);
}

test('what is asked', async () => {
  const agent = `O'Brien "x" \\ y`;
  await site.get("/checkout/?q='%22&x=\\", { address: '2001:db8:1:2::7', headers: { 'User-Agent': agent, Cookie: 'qm_checkout=e30.x; other=1' } });
  const [{ query, headers }] = queue.checks;
  assert.deepEqual(Object.fromEntries(query), { roomId: 'checkout', ip: '2001:db8:1:2::7', agent, url: `${HOME}/checkout/?q='%22&x=%5C` });
  assert.equal(headers.authorization, 'Bearer pk_test_1');
  assert.equal(headers['x-qm-session'], undefined);
  assert.equal(headers.cookie, undefined);
  assert.equal(queue.checks.length, 1);
});

test('the longest request stays readable', async () => {
  const token = `${Buffer.from('{"r":"checkout","n":1,"g":1,"iat":1}').toString('base64url')}.${'s'.repeat(960)}`;
  await site.get(`/checkout/?${'%E0'.repeat(350)}`, { address: '2001:db8:1111:2222:3333:4444:5555:6666', headers: { 'User-Agent': '%'.repeat(900), Cookie: `qm_checkout=${token}` } });
  assert.equal(queue.checks[0].query.get('token'), token);
  assert.ok(queue.checks[0].target.length > 3500 && queue.checks[0].target.length <= 4096, `${queue.checks[0].target.length}`);
  assert.equal(queue.checks[0].query.get('agent'), '%'.repeat(256));
});

test('statuses that are an outage', async () => {
  for (const status of [401, 403, 404, 418, 500, 502, 503, 504]) {
    queue.answer = queue.json(status, { code: 'x' });
    assertOpen(await site.get('/checkout/'), `http-${status}`);
  }
});

test('a redirect is not followed', async () => {
  queue.answer = (request, response) => response.writeHead(302, { Location: '/api/v1/verify' }).end();
  assertOpen(await site.get('/checkout/'), 'http-302');
});

test('bodies that are no answer', async () => {
  for (const body of ['', '{', 'null', '[]', '<html>', '{"action":"PASS"}', '\u0000', 'x'.repeat(200_000), `{"action":"queue","x":"${'a'.repeat(70_000)}"}`, '['.repeat(5000)]) {
    queue.answer = queue.json(200, body);
    assertOpen(await site.get('/checkout/'), 'invalid-response');
  }
});

test('an answer that does not come in time', async () => {
  queue.answer = () => {};
  assertOpen(await site.get('/checkout/'), 'timeout');
});

test('an answer that drips', async () => {
  queue.answer = (request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const timer = setInterval(() => response.write(' '), 100);
    response.on('close', () => clearInterval(timer));
  };
  assertOpen(await site.get('/checkout/'), 'timeout');
});

test('a connection that breaks, and bytes that are no HTTP', async () => {
  queue.answer = (request) => request.socket.destroy();
  assertOpen(await site.get('/checkout/'), 'unreachable');
  queue.answer = (request) => request.socket.end('\u0000\u0001 not HTTP at all\r\n\r\n');
  const answer = await site.get('/checkout/');
  assertOpen(answer, answer.headers['x-qm-failover']);
  assert.match(answer.headers['x-qm-failover'], /^(unreachable|invalid-response|http-0)$/);
  queue.answer = (request, response) => {
    response.writeHead(200, { 'Content-Length': 999 });
    response.write('{"action":"qu');
    setTimeout(() => request.socket.destroy(), 20);
  };
  assertOpen(await site.get('/checkout/'), 'unreachable');
});

test('busy is not broken', async () => {
  for (const [status, body] of [[429, { code: 'rate_limited' }], [429, ''], [503, { code: 'server_saturated' }]]) {
    queue.answer = queue.json(status, body);
    const answer = await site.get('/checkout/?a=1', { headers: { Cookie: 'qm_checkout=junk' } });
    assert.deepEqual([answer.status, answer.headers.location, answer.headers['x-qm-failover'], answer.cookies], [302, waiting('/checkout/?a=1'), undefined, []]);
  }
});

test('what the visitor sent badly opens nothing', async () => {
  for (const status of [400, 413, 414]) {
    queue.answer = queue.json(status, { code: 'x' });
    assert.equal((await site.get('/checkout/')).headers.location, waiting('/checkout/'));
  }
});

test('no answer leads away from the queue server', async () => {
  for (const named of ['https://evil.example/w/x', '//evil.example', '/\\evil.example', `${queue.url}@evil.example/`, 'javascript:alert(1)', '\r\nX: y', 7, null]) {
    queue.answer = queue.json(200, { action: 'queue', waitingRoomUrl: named });
    assert.equal((await site.get('/checkout/')).headers.location, waiting('/checkout/'), String(named));
  }
  queue.answer = queue.json(200, { action: 'queue', waitingRoomUrl: `${queue.url}/w/checkout?lang=th` });
  assert.equal((await site.get('/checkout/')).headers.location, `${queue.url}/w/checkout?lang=th&qm_return=${encodeURIComponent(`${HOME}/checkout/`)}`);
});

test('a key that is refused is said every time, and shown to the owner', async () => {
  queue.answer = queue.json(401, { code: 'unauthorized' });
  const said = () => site.log.split('refuses the public key (http-401): the site is UNPROTECTED').length - 1;
  const before = said();
  for (let i = 0; i < 3; i += 1) assertOpen(await site.get('/checkout/'), 'http-401');
  assert.equal(said() - before, 3);
  const page = await site.get('/wp-admin/index.php', { headers: { Cookie: site.cookie } });
  assert.match(page.text, /refuses the public key\. The site is open to everybody/);
});

test('output that began too early becomes a link, not the page', async () => {
  site.behave({ early_output: true });
  const answer = await site.get('/checkout/');
  assert.equal(answer.status, 200);
  assert.doesNotMatch(answer.text, /SECRET/);
  assert.ok(answer.text.includes(`<a href="${queue.url}/w/checkout?qm_return=${encodeURIComponent(`${HOME}/checkout/`)}`), answer.text);
});

test('another plugin that breaks opens the page and says so', async () => {
  site.behave({ throw: true });
  assertOpen(await site.get('/checkout/'), 'unreachable');
  assert.match(site.log, /Queue Manager: the gate failed, so the page is open: another plugin is broken/);
});

test('many visitors at once each get their own answer', async () => {
  queue.answer = (request, response, query) => {
    const n = Number(query.get('agent'));
    const body = n % 2 ? { action: 'pass', reason: 'session' } : { action: 'queue', waitingRoomUrl: `/w/checkout?n=${n}` };
    setTimeout(() => queue.json(200, body)(request, response), Math.random() * 60);
  };
  const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => site.get('/checkout/', { headers: { 'User-Agent': String(n) } })));
  answers.forEach((answer, n) => {
    if (n % 2) assert.equal(answer.status, 200);
    else assert.match(answer.headers.location, new RegExp(`\\?n=${n}&qm_return=`));
  });
});

test('without the curl extension', async (t) => {
  const plain = await Site.start({ withoutCurl: true });
  t.after(() => plain.stop());
  await plain.save({ server: queue.url, room: 'checkout', key: 'pk_test_1', is_wanted: '1' });
  assert.equal((await plain.get('/checkout/')).headers.location, waiting('/checkout/'));
  queue.answer = () => {};
  assertOpen(await plain.get('/checkout/'), 'timeout');
  queue.answer = (request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const timer = setInterval(() => response.write(' '), 100);
    response.on('close', () => clearInterval(timer));
  };
  assertOpen(await plain.get('/checkout/'), 'timeout');
  queue.answer = queue.json(500, '');
  assertOpen(await plain.get('/checkout/'), 'http-500');
  queue.answer = queue.json(200, `{"action":"queue","x":"${'a'.repeat(70_000)}"}`);
  assertOpen(await plain.get('/checkout/'), 'invalid-response');
});

test('a server that is gone, and one whose port swallows everything', async () => {
  const hole = net.createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise((resolve) => hole.once('listening', resolve));
  const { port } = hole.address();
  site.php(`$s = get_option( 'queue_manager_settings' ); $s['server'] = 'http://127.0.0.1:${port}'; update_option( 'queue_manager_settings', $s );`);
  assert.equal((await site.get('/checkout/')).headers['x-qm-failover'], undefined, 'other settings are not armed');
  site.php('QueueManager\\Settings::load()->remember( true, array() );');
  assertOpen(await site.get('/checkout/'), 'timeout');
  await new Promise((resolve) => hole.close(resolve).closeAllConnections?.() ?? resolve());
  assertOpen(await site.get('/checkout/'), 'unreachable');
});
