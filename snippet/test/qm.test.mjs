// The snippet: its file, its settings, what it asks, and what it does with each answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, constants } from 'node:zlib';
import { SERVER, SITE, SOURCE, T0, destination, open, settle, tag, token } from './fake-browser.mjs';

const HERE = `${SITE}/checkout`;
const ROOM = `${SERVER}/w/checkout`;
const MINUTE = 60_000;
const OLD = token({ r: 'checkout', n: 1, g: 1, iat: T0 });
const HELD = { qm_checkout: OLD, qmk_checkout: 'qk_old' };
const FRESH = { ...HELD, qmt_checkout: String(T0 - 5 * MINUTE) };

const pass = (more) => ({ body: { action: 'pass', ...more } });
const queue = (more) => ({ body: { action: 'queue', waitingRoomUrl: '/w/checkout', ...more } });
const contents = (page) => Object.fromEntries(page.storage.map);
const sent = (page) => page.requests.map((request) => [request.token, request.key]);

/** The page stays as it is and nothing was said about it. */
function assertStays(page, why) {
  assert.deepEqual(page.left, [], why);
  assert.deepEqual(page.errors, [], why);
}

// ---- The file ------------------------------------------------------------------------------------

test('SNP-08: at most 5,000 bytes on the wire', () => {
  const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
  const bytes = brotliCompressSync(Buffer.from(SOURCE), options).length;
  assert.ok(bytes <= 5000, `${bytes} bytes`);
});

/** The code without comments and quoted text. */
const bare = (source) =>
  source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'/g, ' ');

const TOO_NEW =
  /\?\.(?!\d)|\?\?|\*\*|\basync\b|\bawait\b|\bimport\b|\bclass\b|catch *\{|\.\.\.|`|\d_\d|\bglobalThis\b|\.(at|flat|flatMap|matchAll|replaceAll|finally|fromEntries|allSettled)\(/;

test('SNP-53: syntax that Safari 12 reads', () => {
  for (const sample of ['a?.b', 'a ?? b', 'async () => 1', 'try {} catch {}', 'class A {}', 'x.at(1)']) {
    assert.match(bare(sample), TOO_NEW, sample);
  }
  assert.doesNotMatch(bare("// a?.b\n/* a ?? b */ f('c?.d'); y = a ? .5 : 1"), TOO_NEW);
  assert.doesNotMatch(bare(SOURCE), TOO_NEW);
});

test('SNP-51: one version, in the comment on top and in the page', async () => {
  const top = SOURCE.slice(0, SOURCE.indexOf('*/'));
  assert.match(top, /^\/\*!?\s+\* Queue Manager snippet 1\.5\.3\n/);
  const page = await open();
  assert.equal(page.window.QueueManager.version, '1.5.3');
});

test('SNP-01 SNP-07 SNP-52: one classic script that loads nothing else', () => {
  new Function(SOURCE);
  assert.doesNotMatch(bare(SOURCE), /\b(import|export|require|createElement|appendChild|eval)\b/);
  assert.doesNotMatch(SOURCE, /https?:\/\/[a-z]/);
  assert.ok(/^[\x00-\x7f]*$/.test(SOURCE), 'plain ASCII, whatever charset it is served with');
});

// ---- Settings ------------------------------------------------------------------------------------

const CDN = 'https://cdn.example.com';
const src = (text) => ({ src: text });
const settings = [
  ['SNP-02: the tag of the guide', { tags: [tag()] }, { server: SERVER, room: 'checkout' }],
  ['SNP-20 SNP-29: parameters alone', { tags: [src(`${SERVER}/snippet/qm.js?room=a`)] }, { server: SERVER, room: 'a' }],
  ['SNP-20: server as a parameter', { tags: [src(`${CDN}/qm.js?room=a&server=${encodeURIComponent(SERVER)}`)] }, { server: SERVER, room: 'a' }],
  ['SNP-21: an attribute wins', { tags: [tag({ src: `${SERVER}/snippet/qm.js?room=b&server=${CDN}` })] }, { server: SERVER, room: 'checkout' }],
  ['SNP-21: an empty attribute does not', { tags: [tag({ src: `${SERVER}/snippet/qm.js?room=b`, 'data-qm-room': '' })] }, { server: SERVER, room: 'b' }],
  ['SNP-22: a bad server hides the parameter', { tags: [tag({ src: `${SERVER}/snippet/qm.js?server=${CDN}`, 'data-qm-server': 'queue' })] }, { server: SERVER, room: 'checkout' }],
  ['SNP-22: a server of another scheme', { tags: [tag({ 'data-qm-server': 'javascript:alert(1)' })] }, { server: SERVER, room: 'checkout' }],
  ['SNP-23: the server is where src points', { tags: [tag({ 'data-qm-server': null })] }, { server: SERVER, room: 'checkout' }],
  ['SNP-23: a slash behind it', { tags: [tag({ 'data-qm-server': `${SERVER}/` })] }, { server: SERVER, room: 'checkout' }],
  ['SNP-23: a port', { tags: [tag({ 'data-qm-server': 'http://127.0.0.1:8080' })] }, { server: 'http://127.0.0.1:8080', room: 'checkout' }],
  ['SNP-27 C132: loaded from a CDN', { tags: [src(`${CDN}/qm.js?room=checkout`)] }, { server: CDN, room: 'checkout' }],
  ['SNP-28: inline with both', { tags: [tag({ src: null })] }, { server: SERVER, room: 'checkout' }],
  ['SNP-28: inline without server', { tags: [{ 'data-qm-room': 'checkout' }] }, null],
  ['SNP-28: bundled without attributes', { tags: [{}] }, null],
  ['SNP-28: an inline server nobody can reach', { tags: [tag({ src: null, 'data-qm-server': 'queue' })] }, null, /data-qm-server.*queue/],
  ['SNP-30: a cache-buster', { tags: [tag({ src: `${SERVER}/snippet/qm.js?v=3&roomId=x&q` })] }, { server: SERVER, room: 'checkout' }],
  ['DOC-11 C128: room as a cache-buster', { tags: [src(`${SERVER}/snippet/qm.js?room=1695`)] }, { server: SERVER, room: '1695' }],
  ['SNP-31 SNP-32: a fragment', { tags: [src(`${SERVER}/snippet/qm.js?room=checkout#v3`)] }, null, /checkout#v3/],
  ['SNP-31: a fragment behind another value', { tags: [src(`${SERVER}/snippet/qm.js?room=checkout&v=1#v3`)] }, { server: SERVER, room: 'checkout' }],
  ['SNP-24 HOL-24: no room', { tags: [tag({ 'data-qm-room': null })] }, null, /data-qm-room/],
  ['SNP-32: 65 characters', { tags: [tag({ 'data-qm-room': 'a'.repeat(65) })] }, null, /a{65}/],
  ['SNP-32: 64 characters', { tags: [tag({ 'data-qm-room': 'a'.repeat(64) })] }, { server: SERVER, room: 'a'.repeat(64) }],
  ['SNP-32 C024: a blank', { tags: [tag({ 'data-qm-room': 'check out' })] }, null, /check out/],
  ['SNP-32: a path', { tags: [tag({ 'data-qm-room': '../x' })] }, null, /\.\.\/x/],
  ['SNP-33: by the usual path', { running: null, tags: [src(`${SERVER}/snippet/qm.js?room=a`)] }, { server: SERVER, room: 'a' }],
  ['SNP-33: anything may follow there', { running: null, tags: [src(`${SERVER}/snippet/qm.js.gz/v3?room=a`)] }, { server: SERVER, room: 'a' }],
  ['SNP-33: by the file name', { running: null, tags: [src(`${CDN}/assets/qm.js?room=a`)] }, { server: CDN, room: 'a' }],
  ['SNP-33: the file name at the end', { running: null, tags: [{ src: `${CDN}/assets/qm.js`, 'data-qm-room': 'a' }] }, { server: CDN, room: 'a' }],
  ['SNP-34 C128: renamed', { running: null, tags: [src(`${CDN}/assets/qm.v3.js?room=a`)] }, null],
  ['SNP-34: another suffix', { running: null, tags: [{ src: `${CDN}/assets/qm.js#v3`, 'data-qm-room': 'a' }] }, null],
  ['SNP-34: part of a longer name', { running: null, tags: [src(`${CDN}/assets/faqm.js?room=a`)] }, null],
  ['SNP-33 C128: a renamed src attribute', { running: null, tags: [{ 'data-rocket-src': `${SERVER}/snippet/qm.js?room=a` }] }, null],
  ['SNP-35 SNP-54: the last complete element', { running: null, tags: [tag({ 'data-qm-room': 'a' }), tag({ 'data-qm-room': 'b' }), src(`${SERVER}/snippet/qm.js?room=c`)] }, { server: SERVER, room: 'b' }],
  ['SNP-35: the parameter of the one that ran is discarded', { running: 0, tags: [src(`${SERVER}/snippet/qm.js?room=c`), tag({ src: null, 'data-qm-room': 'a' })] }, { server: SERVER, room: 'a' }],
  ['SNP-35: the one that ran has a room', { running: 0, tags: [tag({ 'data-qm-room': 'a' }), tag({ 'data-qm-room': 'b' })] }, { server: SERVER, room: 'a' }],
  ['SNP-35: a name to find is not needed by the one that ran', { tags: [src(`${SERVER}/q/door.js?room=a`)] }, { server: SERVER, room: 'a' }],
];

for (const [name, options, expected, complaint] of settings) {
  test(`settings, ${name}`, async () => {
    const page = await open(options);
    assert.deepEqual(page.left, []);
    assert.equal(page.errors.length, complaint ? 1 : 0, String(page.errors));
    if (complaint) assert.match(page.errors[0], complaint);
    if (!expected) {
      assert.equal(page.window.QueueManager, undefined);
      assert.equal(page.requests.length, 0);
      return;
    }
    const { server, roomId } = page.window.QueueManager;
    assert.deepEqual({ server, room: roomId }, expected);
    assert.equal(page.requests.length, 1);
    assert.ok(page.requests[0].url.startsWith(`${expected.server}/api/v1/check?roomId=${expected.room}&`));
  });
}

for (const [name, attributes, ms] of [
  ['default', {}, 2000],
  ['attribute', { 'data-qm-timeout': '500' }, 500],
  ['parameter', { src: `${SERVER}/snippet/qm.js?timeout=700` }, 700],
  ['attribute first', { 'data-qm-timeout': '500', src: `${SERVER}/snippet/qm.js?timeout=700` }, 500],
  ['not a number hides the parameter', { 'data-qm-timeout': 'fast', src: `${SERVER}/snippet/qm.js?timeout=700` }, 2000],
  ['zero', { 'data-qm-timeout': '0' }, 2000],
  ['negative', { 'data-qm-timeout': '-5' }, 2000],
  ['unit', { 'data-qm-timeout': '5s' }, 2000],
  ['beyond the timer of a browser', { 'data-qm-timeout': '99999999999' }, 2000],
]) {
  for (const missing of [[], ['fetch'], ['AbortController']]) {
    test(`SNP-25 SNP-42: timeout, ${name}${missing.map((one) => `, no ${one}`)}`, async () => {
      let request;
      const server = (one) => void (request = one);
      const page = await open({ tags: [tag(attributes)], server, missing });
      let over = false;
      page.window.QueueManager.check().then(() => (over = true));
      await page.tick(ms - 1);
      assert.equal(over, false, 'still waiting');
      await page.tick(1);
      assert.equal(over, true, 'given up');
      if (!missing.length) assert.equal(request.options.signal.aborted, true);
      request.answer({ action: 'queue', waitingRoomUrl: '/w/checkout' });
      await settle();
      assertStays(page, 'a late answer is none');
    });
  }
}

test('SNP-42: the timeout covers the body, and ends with it', async () => {
  let finish;
  const text = () => new Promise((resolve) => (finish = resolve));
  const page = await open({ globals: { fetch: async () => ({ status: 200, text }) } });
  await page.tick(2000);
  finish('{"action":"queue"}');
  await settle();
  assertStays(page);
  const quick = await open();
  assert.equal(quick.clock.waiting(), 0, 'no timer is left behind');
});

// ---- The request ---------------------------------------------------------------------------------

test('SNP-11 SNP-41 SNP-17 CHK-08 CHK-15: what is asked', async () => {
  const page = await open({ url: `${HERE}?a=1&b=%20#/step`, local: HELD });
  const [request] = page.requests;
  assert.equal(request.path, '/api/v1/check');
  assert.equal(request.room, 'checkout');
  assert.equal(request.token, OLD);
  assert.equal(request.page, `${HERE}?a=1&b=%20`, 'without the fragment');
  assert.deepEqual(request.headers, { 'X-QM-Session': 'qk_old' });
  assert.ok(!request.url.includes('qk_old'), 'the key is in no URL');
  assert.equal(request.options.credentials, 'omit');
  assert.equal(request.options.method ?? 'GET', 'GET');
  const plain = await open();
  assert.deepEqual(plain.requests[0].headers, {}, 'no header, no preflight');
  assert.equal(plain.requests[0].token, '');
});

test('SNP-53: XHR where fetch cannot be aborted', async () => {
  for (const missing of [['fetch'], ['AbortController']]) {
    const page = await open({ missing, local: HELD, server: () => queue() });
    assert.equal(page.requests[0].kind, 'xhr');
    assert.equal(page.requests[0].key, 'qk_old');
    assert.ok(!page.requests[0].options.credentials);
    assert.equal(destination(page).back, HERE);
    const broken = await open({ missing, server: () => undefined });
    broken.requests[0].fail();
    await broken.window.QueueManager.check();
    assertStays(broken);
  }
});

const LONG = 'x'.repeat(5000);
for (const [name, url, asked, back] of [
  ['fits', `${HERE}?q=${'x'.repeat(3000)}`, `${HERE}?q=${'x'.repeat(3000)}`, `${HERE}?q=${'x'.repeat(3000)}`],
  ['a little too long', `${HERE}?q=${'x'.repeat(3930)}`, HERE, HERE],
  ['long fragment', `${HERE}?q=1#${LONG}`, `${HERE}?q=1`, `${HERE}?q=1`],
  ['long query', `${HERE}?q=${LONG}`, HERE, HERE],
  ['a query of escapes', `${HERE}?q=${'%25'.repeat(900)}`, HERE, HERE],
  ['long path', `${SITE}/${LONG}`, '', ''],
]) {
  test(`API-32: the request line stays below 4096 bytes, ${name}`, async () => {
    const page = await open({ url, local: HELD, server: () => queue() });
    const [request] = page.requests;
    assert.equal(request.page, asked);
    assert.ok(`GET ${request.url} HTTP/1.1`.length < 4096);
    assert.equal(destination(page).back, back);
    assert.ok(page.left[0].length < 4096);
  });
}

test('C131: an over-long or odd stored value is no token and no key', async () => {
  for (const bad of ['x'.repeat(1025), 'a b', 'a\nb', 'ก', 'a"b', 'a;b', '\ud800']) {
    const page = await open({ local: { qm_checkout: bad, qmk_checkout: bad }, server: () => queue() });
    assert.deepEqual(sent(page), [['', '']], bad.slice(0, 9));
    assert.equal(page.window.QueueManager.token(), null);
    assert.equal(destination(page).room, ROOM);
  }
  const most = 'x'.repeat(1024);
  assert.deepEqual(sent(await open({ local: { qm_checkout: most } })), [[most, '']]);
});

// ---- Answers -------------------------------------------------------------------------------------

test('SNP-04 SNP-13 SNP-05: pass changes nothing', async () => {
  for (const more of [{}, { reason: 'bypass' }, { reason: 'no_room' }, { session: true, reason: 'session' }]) {
    const page = await open({ local: FRESH, server: () => pass(more) });
    assertStays(page);
    assert.deepEqual(contents(page), FRESH);
    assert.equal(page.location.href, HERE);
    assert.deepEqual(page.jar.written, []);
    assert.deepEqual(page.historyCalls, []);
  }
});

test('SNP-14: queue goes to the waiting page, in place of this one', async () => {
  const url = `${HERE}?a=1&b=%E0%B8%81+c#/step/2`;
  const page = await open({ url, local: HELD, server: () => queue() });
  const { room, back, url: to } = destination(page);
  assert.equal(room, ROOM);
  assert.equal(back, url, 'the full address');
  assert.deepEqual([...to.searchParams.keys()], ['qm_return']);
  assert.deepEqual(contents(page), HELD, 'nothing is deleted without clearToken');
});

for (const [name, waitingRoomUrl, expected] of [
  ['relative', '/w/checkout', ROOM],
  ['own words', '/w/other', `${SERVER}/w/other`],
  ['absolute', `${SERVER}/w/checkout`, ROOM],
  ['with a query and a fragment', '/w/checkout?lang=th#x', ROOM],
  ['elsewhere', 'https://evil.example/w/checkout', ROOM],
  ['elsewhere by slashes', '//evil.example/w', ROOM],
  ['elsewhere by backslashes', '\\\\evil.example\\w', ROOM],
  ['a look-alike', `${SERVER}.evil.example/`, ROOM],
  ['another port', `${SERVER}:8443/w/checkout`, ROOM],
  ['another scheme', 'http://queue.example.com/w/checkout', ROOM],
  ['script', 'javascript:alert(1)', ROOM],
  ['unreadable', 'https://[', ROOM],
  ['empty', '', ROOM],
  ['missing', undefined, ROOM],
  ['not text', { a: 1 }, ROOM],
  ['endless', `/${LONG}`, ROOM],
]) {
  test(`CHK-03 SNP-14: waitingRoomUrl ${name}`, async () => {
    const page = await open({ server: () => queue({ waitingRoomUrl }) });
    const { room, back, url } = destination(page);
    assert.equal(room, expected);
    assert.equal(back, name === 'endless' ? null : HERE);
    if (name.startsWith('with')) assert.equal(url.searchParams.get('lang'), 'th');
  });
}

for (const [name, reply] of [
  ['no connection', 'network'],
  ['500', { status: 500, body: { action: 'queue' } }],
  ['503', { status: 503, body: { code: 'storage_unavailable' } }],
  ['503 without a body', { status: 503, body: '' }],
  ['400', { status: 400, body: { code: 'invalid_room_id' } }],
  ['401', { status: 401, body: { code: 'unauthorized' } }],
  ['403 HOL-66', { status: 403, body: { action: 'queue' } }],
  ['404 twice', { status: 404, body: { code: 'not_found' } }],
  ['no JSON', { body: '<html>' }],
  ['an empty body', { body: '' }],
  ['null', { body: 'null' }],
  ['a number', { body: '7' }],
  ['a list', { body: '["queue"]' }],
  ['an unknown action', { body: { action: 'QUEUE' } }],
  ['an action that is not text', { body: { action: ['queue'] } }],
  ['no action', { body: { waitingRoomUrl: '/w/checkout', clearToken: true } }],
  ['a code on a 200', { body: { code: 'server_saturated' } }],
]) {
  test(`SNP-06 SNP-42: ${name} fails open`, async () => {
    const page = await open({ local: HELD, server: () => reply });
    assert.ok(page.requests.length >= 1);
    assertStays(page);
    assert.deepEqual(contents(page), HELD);
  });
}

test('SNP-12 C130: 404 falls back to /api/check once for the life of the page', async () => {
  const server = (request) => (request.path === '/api/v1/check' ? { status: 404, body: '' } : pass());
  const page = await open({ server, local: HELD });
  await page.window.QueueManager.check();
  await page.window.QueueManager.check();
  assert.deepEqual(
    page.requests.map((request) => request.path),
    ['/api/v1/check', '/api/check', '/api/check', '/api/check'],
  );
  assert.deepEqual(sent(page)[1], [OLD, 'qk_old'], 'the same question');
  const none = await open({ server: () => ({ status: 404, body: '{"code":"not_found"}' }) });
  await none.window.QueueManager.check();
  assert.equal(none.requests.length, 3);
  const broken = await open({ server: () => ({ status: 500, body: '' }) });
  await broken.window.QueueManager.check();
  assert.ok(broken.requests.every((request) => request.path === '/api/v1/check'), 'only 404 does');
  const other = await open({ server: (request) => (request.path === '/api/check' ? queue() : { status: 404, body: '' }) });
  assert.equal(destination(other).room, ROOM);
});
