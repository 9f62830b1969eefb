// A real WordPress in front of a real queue server: who gets the page, and what travels.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PUBLIC_API_KEY, mint, startServer } from '../../../../scripts/blackbox/harness.mjs';
import { HOME, Site } from './wordpress.mjs';

let server;
let site;
before(async () => {
  [server, site] = await Promise.all([startServer(), Site.start()]);
});
after(async () => {
  await site?.stop();
  await server?.stop();
});

/** A room of its own, and the site armed for it. */
async function arm(fields = {}, settings = {}) {
  const room = await server.room(fields);
  const page = await site.save({ server: server.url, room, key: PUBLIC_API_KEY, is_wanted: '1', ...settings });
  assert.equal(page.state, 'success', page.points.join());
  return room;
}
const waiting = (room, target) => `${server.url}/w/${room}?qm_return=${encodeURIComponent(HOME + target)}`;
const shows = (answer) => /SECRET/.test(answer.text);
const released = async (room, visitor = server.visitor()) => {
  await visitor.join(room);
  await server.flush(room);
  return visitor;
};
/** The site as this visitor opens it. */
const open = (visitor, target, cookie, method = 'GET') =>
  site.request(method, target, { address: visitor.ip, headers: { 'User-Agent': visitor.agent, ...(cookie ? { Cookie: cookie } : {}) } });

test('a visitor without a pass gets the waiting page and nothing of the site', async () => {
  const room = await arm();
  for (const [method, target] of [['GET', '/checkout/'], ['GET', '/'], ['GET', '/no-such-page/?a=b&c=%2F'], ['GET', '/feed/'], ['GET', '/?wc-ajax=checkout'], ['POST', '/checkout/'], ['DELETE', '/checkout/']]) {
    const answer = await site.request(method, target, method === 'POST' ? { form: { a: 'b' } } : {});
    assert.equal(answer.status, 302, `${method} ${target}`);
    assert.equal(answer.headers.location, waiting(room, target));
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.equal(answer.headers['x-qm-failover'], undefined);
    assert.deepEqual([answer.text, answer.cookies], ['', []]);
  }
});

test('administration, login and the programming interface stay reachable', async () => {
  await arm();
  assert.equal((await site.get('/wp-login.php')).status, 200);
  assert.equal((await site.get('/wp-json/')).status, 200);
  assert.equal((await site.get('/wp-admin/', { headers: { Cookie: site.cookie } })).status, 200);
});

test('crawlers read robots.txt, and its name opens nothing else', async () => {
  await arm();
  const robots = await site.get('/robots.txt');
  assert.deepEqual([robots.status, /User-agent/.test(robots.text)], [200, true]);
  for (const target of ['/?robots=1', '/checkout/?robots=1', '/robots.txt?wc-ajax=checkout', '/robots.txt/', '/?favicon=1']) {
    assert.ok((await site.get(target)).headers.location?.startsWith(`${server.url}/w/`), target);
  }
});

test('a released visitor walks in, and stays in', async () => {
  const room = await arm();
  const visitor = await released(room);
  const { redirectUrl } = (await visitor.status()).json;
  const pass = new URL(redirectUrl).searchParams.get('qm_token');
  const arrived = await open(visitor, `/checkout/?a=1&qm_token=${pass}&b=%2F`);
  assert.deepEqual([arrived.status, arrived.headers.location, arrived.headers['cache-control']], [302, `${HOME}/checkout/?a=1&b=%2F`, 'no-store']);
  const [cookie] = arrived.cookies;
  assert.equal(cookie.name, `qm_${room}`);
  assert.equal(cookie.value, pass);
  for (const attribute of [/; path=\/(;|$)/i, /; HttpOnly/i, /; SameSite=Lax/i, /; Secure/i, /; Max-Age=86400/i]) assert.match(cookie.line, attribute);
  assert.doesNotMatch(cookie.line, /domain/i);
  for (let i = 0; i < 3; i += 1) {
    const page = await open(visitor, '/checkout/?a=1', `${cookie.name}=${cookie.value}`);
    assert.equal(page.status, 200);
    assert.ok(shows(page));
    assert.equal(page.headers['cache-control'], 'private, no-cache');
    assert.match(page.text, /<!-- cached: no -->/);
    assert.deepEqual(page.cookies, []);
  }
  assert.equal((await server.listed(room)).sessions, 1);
});

test('somebody else with the same pass does not', async () => {
  const room = await arm();
  const visitor = await released(room);
  const thief = server.visitor();
  const stolen = await open(thief, `/checkout/?qm_token=${visitor.token}`);
  assert.deepEqual([stolen.status, stolen.headers.location, stolen.cookies], [302, waiting(room, '/checkout/'), []]);
  assert.equal((await open(visitor, `/checkout/?qm_token=${visitor.token}`)).headers.location, `${HOME}/checkout/`);
});

test('a place that is over is forgotten before the visitor leaves', async () => {
  const room = await arm();
  const visitor = await released(room);
  await open(visitor, `/checkout/?qm_token=${visitor.token}`);
  await server.operate('POST', `/rooms/${room}/eject`, { ticket: 1 });
  const answer = await open(visitor, '/checkout/', `qm_${room}=${visitor.token}`);
  assert.deepEqual([answer.status, answer.headers.location], [302, waiting(room, '/checkout/')]);
  assert.equal(answer.cookies.length, 1);
  assert.match(answer.cookies[0].line, new RegExp(`^qm_${room}=(deleted)?; expires=Thu, 01.Jan.1970 00:00:01 GMT; Max-Age=0; path=/`, 'i'));
});

test('a place that waits keeps its cookie', async () => {
  const room = await arm();
  const visitor = server.visitor();
  await visitor.join(room);
  const answer = await open(visitor, '/checkout/', `qm_${room}=${visitor.token}`);
  assert.deepEqual([answer.status, answer.cookies], [302, []]);
});

test('a dead pass in the address does not cost the session in the cookie', async () => {
  const room = await arm();
  const visitor = await released(room);
  await open(visitor, `/checkout/?qm_token=${visitor.token}`);
  const forged = mint({ r: room, n: 1, g: 1, iat: Date.now() }, { secret: 'somebody-elses-secret-0123456789abcd' });
  const foreign = mint({ r: 'elsewhere', n: 1, g: 1, iat: Date.now() });
  for (const token of [forged, foreign, 'junk', '', `${visitor.token};%20Domain=evil.example`]) {
    const answer = await open(visitor, `/checkout/?qm_token=${token}`, `qm_${room}=${visitor.token}`);
    assert.deepEqual([answer.status, answer.headers.location, answer.cookies], [302, `${HOME}/checkout/`, []], token);
  }
});

test('fetching ahead does not spend a pass', async () => {
  const room = await arm();
  const visitor = await released(room);
  const target = `/checkout/?qm_token=${visitor.token}`;
  for (const [method, headers] of [['HEAD', {}], ['GET', { 'Sec-Purpose': 'prefetch;prerender' }], ['GET', { Purpose: 'prefetch' }], ['GET', { 'X-Moz': 'prefetch' }]]) {
    const answer = await site.request(method, target, { address: visitor.ip, headers });
    assert.deepEqual([answer.status, answer.headers['cache-control'], answer.text], [503, 'no-store', '']);
  }
  assert.equal((await server.listed(room)).sessions, 0);
  assert.equal((await open(visitor, target)).headers.location, `${HOME}/checkout/`);
});

test('the rules of the room decide, and pages outside are left alone', async () => {
  const room = await arm({ urlPatterns: ['/checkout*', '!/checkout/help*'] });
  const about = await site.get('/about/');
  assert.ok(shows(about));
  assert.equal(about.headers['cache-control'], undefined);
  assert.match(about.text, /<!-- cached: yes -->/);
  assert.equal((await site.get('/checkout/')).status, 302);
  assert.equal((await site.get('/CHECKOUT/')).status, 302);
  assert.equal((await site.get('/%63heckout/')).status, 302);
  assert.equal((await site.get('//checkout/')).status, 302);
  await server.operate('POST', '/rooms', { id: room, urlPatterns: ['/about*'] });
  assert.equal((await site.get('/about/')).status, 302, 'a rule works from the next check on');
  assert.ok(shows(await site.get('/checkout/')));
});

test('another way of naming a page does not get around the rules', async () => {
  for (const rules of ['', '/checkout*']) {
    await arm({ urlPatterns: rules ? [] : ['/checkout*'] }, { rules });
    for (const target of [`/?page_id=${site.pages.checkout}`, `/?p=${site.pages.checkout}`, '/?pagename=checkout', '/index.php/checkout/', `/about/?page_id=${site.pages.checkout}`, '/checkout/x/../../about/../checkout/']) {
      let answer = await site.get(target);
      // WordPress itself leads some of them to the canonical address first.
      if (answer.headers.location?.startsWith(HOME)) answer = await site.get(answer.headers.location.slice(HOME.length));
      assert.ok(answer.headers.location?.startsWith(`${server.url}/w/`), `${target}: ${answer.status} ${answer.headers.location}`);
      assert.ok(!shows(answer));
    }
    assert.ok(shows(await site.get('/about/')));
  }
});

test('a form sent to an address without its slash does not get around the rules', async () => {
  for (const rules of ['', '/checkout/*']) {
    await arm({ urlPatterns: rules ? [] : ['/checkout/*'] }, { rules });
    assert.equal((await site.request('POST', '/checkout', { form: { a: 'b' } })).status, 302);
    assert.ok(shows(await site.request('POST', '/about', { form: { a: 'b' } })));
    assert.equal((await site.get('/checkout')).headers.location, `${HOME}/checkout/`);
  }
});

test('the rules of the site win over those of the room', async () => {
  await arm({ urlPatterns: ['/about*'] }, { rules: '/checkout*\r\n\r\n!/checkout/help*' });
  assert.equal((await site.get('/checkout/')).status, 302);
  assert.ok(shows(await site.get('/about/')));
});

test('a pass that arrives outside the rules of the site is kept for inside', async () => {
  const room = await arm({}, { rules: '/checkout*' });
  const visitor = await released(room);
  const arrived = await open(visitor, `/about/?qm_token=${visitor.token}`);
  assert.deepEqual([arrived.status, arrived.headers.location, arrived.cookies[0]?.value], [302, `${HOME}/about/`, visitor.token]);
  assert.ok(shows(await open(visitor, '/checkout/', `qm_${room}=${visitor.token}`)));
});

test('a long query is cut without opening a rule that looks at queries', async () => {
  await arm({ urlPatterns: ['/checkout/?*step=2*'] });
  const junk = 'x'.repeat(3000);
  assert.equal((await site.get(`/checkout/?${junk}&step=2`)).status, 302);
  await arm({ urlPatterns: ['/checkout*'] });
  assert.ok(shows(await site.get(`/about/?${junk}`)), 'and without closing other pages');
  assert.equal((await site.get(`/checkout/?${junk}`)).status, 302);
  await arm({}, { rules: '/checkout/?*step=2*' });
  assert.equal((await site.get(`/checkout/?${junk}&step=2`)).status, 302);
});

test('nothing a visitor sends opens the page or breaks it', async () => {
  const room = await arm();
  const long = 'a'.repeat(6000);
  const cookies = [
    'junk', '=', ';;;=;', `qm_${room}=`, `qm_${room}=${long}`, `qm_${room}="`, `qm_${room}=%00%0d%0a`, `qm_${room}[]=x`, `qm.${room}=x; qm ${room}=y`,
    `qm_${room}=a.b; `.repeat(200), `qm_${room}=${mint({ r: room, n: 1, g: 1, iat: 9e15 }, { secret: 'wrong' })}`, `qm_${room}=\xff\xfe`, `QM_${room.toUpperCase()}=x`,
    `qm_${room}=${mint({ r: room, n: 0, g: 1, iat: Date.now() })}`, `qms_${room}=x; qm_dk_${room}=y`,
  ];
  const targets = ['/checkout/?qm_token=' + long, '/checkout/?' + '%'.repeat(3000), '/checkout/?qm_token[]=x&qm_token[y]=z', '/' + 'b'.repeat(7000), '/checkout/?roomId=x&token=y&ip=1.2.3.4', '/%00', '/%ff%fe', "/o'brien/?q=\"x\"", 'http://evil.example/checkout/', '//evil.example/checkout/'];
  const agents = [long, "O'Brien \"x\" \\ y", '%00', '\xff\xfe', '&ip=8.8.8.8', '<script>'];
  const requests = [
    ...cookies.map((Cookie) => ['/checkout/', { Cookie }]),
    ...targets.map((target) => [target, {}]),
    ...agents.map((agent) => ['/checkout/', { 'User-Agent': agent }]),
    ['/checkout/', { Referer: `${HOME}/about/` }],
    ['/checkout/', { Authorization: 'Bearer x', 'X-QM-Session': 'qk_x', 'X-QM-Failover': 'timeout' }],
  ];
  for (const [target, headers] of requests) {
    const answer = await site.get(target, { headers });
    const what = JSON.stringify([target.slice(0, 60), headers]).slice(0, 200);
    assert.equal(answer.status, 302, what);
    assert.ok(answer.headers.location.startsWith(`${server.url}/w/${room}`), `${what}: ${answer.headers.location}`);
    assert.equal(answer.headers['x-qm-failover'], undefined, what);
  }
  assert.equal((await server.operate('GET', '/health')).refusedKeyChecks?.[room], undefined);
});

test('scheme and host of the request decide nothing', async () => {
  const room = await arm();
  for (const [headers, https] of [[{}, false], [{ 'X-Forwarded-Proto': 'https' }, false], [{ Host: 'shop.example.com:443' }, true], [{ Host: 'evil.example' }, true]]) {
    const answer = await site.get('/checkout/', { headers, https });
    assert.equal(answer.headers.location, waiting(room, '/checkout/'), JSON.stringify(headers));
  }
});

test('a room that is deleted later lets everybody in, and the server counts it', async () => {
  const room = await arm();
  await server.operate('DELETE', `/rooms/${room}`);
  assert.ok(shows(await site.get('/checkout/')));
  assert.equal((await server.operate('GET', '/health')).unknownRoomChecks[room], 1);
});

test('the plugin itself raises no notice', () => {
  assert.deepEqual(site.log.split('\n').filter((line) => /PHP .*plugins\/queue-manager/.test(line)), []);
});
