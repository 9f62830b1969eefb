// What the snippet keeps (pass, key, time of issue) and what makes it ask again.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SERVER, SITE, T0, destination, open, settle, tag, token } from './fake-browser.mjs';

const HERE = `${SITE}/checkout`;
const ROOM = `${SERVER}/w/checkout`;
const MINUTE = 60_000;
const OLD = token({ r: 'checkout', n: 1, g: 1, iat: T0 });
const NEW = token({ r: 'checkout', n: 42, g: 1, iat: T0 });
const FOREIGN = token({ r: 'vip', n: 7, g: 1, iat: T0 });
const HELD = { qm_checkout: OLD, qmk_checkout: 'qk_old' };
const FRESH = { ...HELD, qmt_checkout: String(T0 - 5 * MINUTE) };

const pass = (more) => ({ body: { action: 'pass', ...more } });
const queue = (more) => ({ body: { action: 'queue', waitingRoomUrl: '/w/checkout', ...more } });
const busy = { status: 429, body: { code: 'rate_limited', error: 'slow down' } };
const contents = (page) => Object.fromEntries(page.storage.map);
const sent = (page) => page.requests.map((request) => [request.token, request.key]);

/** The page stays as it is and nothing was said about it. */
function assertStays(page, why) {
  assert.deepEqual(page.left, [], why);
  assert.deepEqual(page.errors, [], why);
}

// ---- 429 and the key -----------------------------------------------------------------------------

const saturated = { status: 503, body: { code: 'server_saturated' } };
for (const [name, local, stays, reply = busy] of [
  ['SNP-43 CHK-35: no key', {}, false],
  ['SNP-43: a 429 without a body', {}, false, { status: 429, body: '' }],
  ['a saturated server is busy too', {}, false, saturated],
  ['SNP-44: a saturated server and a fresh key', FRESH, true, saturated],
  ['SNP-44 SNP-48: a key of five minutes', FRESH, true],
  ['SNP-48: 30 minutes', { ...HELD, qmt_checkout: String(T0 - 30 * MINUTE) }, true],
  ['SNP-48 SNP-49: 30 minutes and a moment', { ...HELD, qmt_checkout: String(T0 - 30 * MINUTE - 1) }, false],
  ['SNP-49: a made-up key', HELD, false],
  ['SNP-49: a time from the future', { ...HELD, qmt_checkout: String(T0 + 1) }, false],
  ['SNP-49: a time that is none', { ...HELD, qmt_checkout: 'soon' }, false],
  ['SNP-49: a time without a key', { qm_checkout: OLD, qmt_checkout: String(T0) }, false],
  ['SNP-49: the time of another room', { ...HELD, qmt_vip: String(T0) }, false],
]) {
  test(`busy, ${name}`, async () => {
    const page = await open({ local, server: () => reply });
    assert.equal(page.requests[0].key, local.qmk_checkout ?? '', 'SNP-50: the key is sent');
    assert.deepEqual(contents(page), local);
    if (stays) assertStays(page);
    else assert.deepEqual([destination(page).room, destination(page).back], [ROOM, HERE]);
  });
}

test('SNP-48 HOL-66: the time of issue comes from the page and has no cookie copy', async () => {
  const cookies = { qmk_checkout: 'qk_old', qmt_checkout: String(T0) };
  assert.equal(destination(await open({ cookies, server: () => busy })).room, ROOM);
});

test('SNP-44 SNP-48: admitted, then busy for longer than the key counts', async () => {
  const replies = [pass({ sess: 'qk_new', session: true }), busy, busy];
  const page = await open({ local: { qm_checkout: OLD }, server: (request, n) => replies[n - 1] });
  assert.equal(page.storage.map.get('qmt_checkout'), String(T0));
  await page.tick(30 * MINUTE);
  await page.window.QueueManager.check();
  assertStays(page);
  await page.tick(1);
  await page.window.QueueManager.check();
  assert.equal(destination(page).room, ROOM);
});

test('SNP-50: a fresh key never overrides the answer of the queue', async () => {
  const page = await open({ local: FRESH, server: () => queue({ reason: 'session_expired', clearToken: true }) });
  assert.equal(destination(page).room, ROOM);
  assert.deepEqual(contents(page), {});
});

// ---- Storage -------------------------------------------------------------------------------------

test('SNP-16 SNP-17 CHK-07 CHK-11: token and key are kept with cookie copies', async () => {
  const page = await open({ url: `${HERE}?qm_token=${NEW}`, server: () => pass({ sess: 'qk_new', session: true }) });
  const expected = { qm_checkout: NEW, qmk_checkout: 'qk_new' };
  assert.deepEqual(contents(page), { ...expected, qmt_checkout: String(T0) });
  assert.deepEqual(Object.fromEntries(page.jar.map), expected);
  for (const line of page.jar.written) {
    assert.match(line, /^qmk?_checkout=[\w.-]+; Path=\/; SameSite=Lax; Max-Age=86400; Secure$/);
  }
  const http = await open({ url: 'http://shop.example.com/?qm_token=' + NEW });
  assert.ok(http.jar.written.every((line) => !line.includes('Secure')), 'plain http has no secure cookies');
  assert.equal(http.jar.map.get('qm_checkout'), NEW);
});

test('CHK-12: an answer without a key leaves the stored one alone', async () => {
  const page = await open({ local: FRESH, server: () => pass({ session: true, sess: 'not a key' }) });
  assert.deepEqual(contents(page), FRESH);
});

test('CHK-10: the first check of a stored pass brings the key', async () => {
  const page = await open({ local: { qm_checkout: OLD }, server: () => pass({ sess: 'qk_new' }) });
  assert.deepEqual(contents(page), { qm_checkout: OLD, qmk_checkout: 'qk_new', qmt_checkout: String(T0) });
});

for (const [name, options] of [
  ['refused at the door', { noStorage: true }],
  ['missing', { noStorage: false, globals: { localStorage: null } }],
  ['throwing', { storageMode: 'throws' }],
  ['full', { storageMode: 'full' }],
]) {
  test(`SNP-53 C122: localStorage ${name}: plain cookies serve`, async () => {
    const server = () => pass({ sess: 'qk_new', session: true });
    const page = await open({ url: `${HERE}?qm_token=${NEW}`, server, ...options });
    assertStays(page);
    assert.equal(page.window.QueueManager.token(), NEW);
    await page.window.QueueManager.check();
    assert.deepEqual(sent(page), [[NEW, ''], [NEW, 'qk_new']]);
  });
}

test('SNP-16: a full storage does not keep an old pass in front of the new one', async () => {
  const page = await open({ url: `${HERE}?qm_token=${NEW}`, local: FRESH, storageMode: 'full' });
  assert.equal(page.window.QueueManager.token(), NEW);
  assert.deepEqual(contents(page), {});
});

test('SNP-53: neither storage nor cookies: works and stays silent', async () => {
  const options = { noStorage: true, cookieMode: 'throws', url: `${HERE}?qm_token=${NEW}` };
  assertStays(await open({ ...options, server: () => pass({ sess: 'qk_new' }) }));
  const page = await open({ ...options, server: () => queue({ clearToken: true }) });
  assert.equal(destination(page).room, ROOM);
  assert.deepEqual(page.errors, []);
  assert.equal(page.window.QueueManager.token(), null);
});

test('SNP-11 C086: cookies are read as pairs', async () => {
  for (const [cookies, expected] of [
    [{ qm_checkout: OLD, qmk_checkout: 'qk_old' }, [OLD, 'qk_old']],
    [{ qm_checkout: `"${OLD}"`, qmk_checkout: '"qk_old"' }, [OLD, 'qk_old']],
    [{ a: '1', qm_checkout2: 'x', xqm_checkout: 'y' }, ['', '']],
    [{ a: 'qm_checkout', qm_checkout: OLD }, [OLD, '']],
  ]) {
    assert.deepEqual(sent(await open({ cookies })), [expected]);
  }
  const both = await open({ local: { qm_checkout: NEW }, cookies: { qm_checkout: OLD } });
  assert.equal(both.requests[0].token, NEW, 'localStorage first');
});

// ---- The pass in the address ---------------------------------------------------------------------

for (const [before, after] of [
  ['?qm_token=T', ''],
  ['?x=1&qm_token=T#/step/2', '?x=1#/step/2'],
  ['?qm_token=T&x=1&x=2&y', '?x=1&x=2&y'],
  ['?q=%E0%B8%81&qm_token=T&r=a+b', '?q=%E0%B8%81&r=a+b'],
  ['?qm_token=T&a&qm_token=T2', '?a'],
  ['?qm_token', ''],
  ['?a=?&qm_token=T', '?a=?'],
]) {
  test(`SNP-15 C116: ${before} becomes ${after || 'nothing'}`, async () => {
    const page = await open({ url: HERE + before });
    assert.equal(page.location.href, HERE + after);
    assert.equal(page.historyCalls.length, 1, 'one replaceState');
    assert.deepEqual(page.history.state, { own: 'state' }, 'the state of the app is kept');
    assert.equal(page.requests[0].page, (HERE + after).split('#')[0]);
  });
}

test('SNP-15: an address without qm_token is never touched', async () => {
  for (const rest of ['?x=1', '?xqm_token=T', '?qm_tokens=T', '#qm_token=z', '?']) {
    const page = await open({ url: HERE + rest });
    assert.deepEqual(page.historyCalls, [], rest);
    assert.equal(page.location.href, HERE + rest);
  }
});

test('SNP-15 C127: a browser that refuses replaceState', async () => {
  const historyError = new Error('SecurityError');
  const page = await open({ url: `${HERE}?qm_token=${NEW}&a=1`, historyError, server: () => queue() });
  assert.deepEqual(page.errors, []);
  assert.deepEqual([page.requests[0].token, page.requests[0].page], [NEW, `${HERE}?a=1`]);
  assert.equal(destination(page).back, `${HERE}?a=1`, 'no token in qm_return');
});

for (const [name, text] of [
  ['another room', FOREIGN],
  ['not JSON', token('{"r":"checkout"')],
  ['not base64', '%%%.x'],
  ['__proto__', token({ r: '__proto__' })],
  ['a list', token({ r: ['checkout'] })],
  ['null', token('null')],
  ['another case', token({ r: 'Checkout' })],
  ['empty', ''],
  ['over-long', token({ r: 'checkout', x: 'x'.repeat(1024) })],
  ['odd characters', `${NEW}%22`],
]) {
  test(`SNP-45 C126: a token of ${name} is stripped and no more`, async () => {
    const page = await open({ url: `${HERE}?qm_token=${text}&a=1`, local: FRESH });
    assert.equal(page.location.href, `${HERE}?a=1`);
    assert.deepEqual(sent(page), [[OLD, 'qk_old']], 'the check goes on with our own');
    assert.deepEqual(contents(page), FRESH);
    assertStays(page);
  });
}

test('SNP-46: a candidate is sent without the key; pass promotes it and ends the old key', async () => {
  const page = await open({ url: `${HERE}?qm_token=${NEW}`, local: FRESH, cookies: HELD });
  assert.deepEqual(sent(page), [[NEW, '']]);
  assert.deepEqual(contents(page), { qm_checkout: NEW });
  assert.deepEqual(Object.fromEntries(page.jar.map), { qm_checkout: NEW });
  await page.window.QueueManager.check();
  assert.deepEqual(sent(page)[1], [NEW, '']);
});

test('SNP-46: a payload in the url alphabet of base64 is read', async () => {
  const odd = token({ r: 'checkout', n: 1, x: '\u00bf\u00ff?>~\u00fb' });
  assert.match(odd, /[-_].*\./, 'the case is one');
  assert.deepEqual(sent(await open({ url: `${HERE}?qm_token=${odd}` })), [[odd, '']]);
});

test('SNP-46: a new key takes the place of the old one', async () => {
  const server = () => pass({ sess: 'qk_new', session: true });
  const page = await open({ url: `${HERE}?qm_token=${NEW}`, local: FRESH, server });
  assert.deepEqual(contents(page), { qm_checkout: NEW, qmk_checkout: 'qk_new', qmt_checkout: String(T0) });
});

test('SNP-47: a refused candidate leaves pass and key, which are checked instead', async () => {
  const server = (request) => (request.token === OLD ? pass() : queue({ clearToken: true }));
  const page = await open({ url: `${HERE}?qm_token=${NEW}`, local: FRESH, server });
  assert.deepEqual(sent(page), [[NEW, ''], [OLD, 'qk_old']]);
  assert.deepEqual(contents(page), FRESH);
  assertStays(page);
  await page.window.QueueManager.check();
  assert.deepEqual(sent(page)[2], [OLD, 'qk_old'], 'refused once, never sent again');
});

test('SNP-47: both refused: one redirect, and only what was judged is gone', async () => {
  const page = await open({ url: `${HERE}?qm_token=${NEW}`, local: FRESH, server: () => queue({ clearToken: true }) });
  assert.deepEqual(sent(page), [[NEW, ''], [OLD, 'qk_old']]);
  assert.equal(destination(page).back, HERE);
  assert.deepEqual(contents(page), {});
});

test('SNP-47: a refused candidate and nothing stored: no second request', async () => {
  const page = await open({ url: `${HERE}?qm_token=${NEW}`, server: () => queue() });
  assert.equal(page.requests.length, 1);
  assert.equal(destination(page).back, HERE);
  assert.deepEqual(contents(page), {});
});

test('SNP-46: the stored pass itself in a link does not cost the visitor the key', async () => {
  const server = (request) => (request.key ? pass() : queue({ reason: 'session_elsewhere', clearToken: true }));
  const page = await open({ url: `${HERE}?qm_token=${OLD}`, local: FRESH, server });
  assert.deepEqual(sent(page), [[OLD, ''], [OLD, 'qk_old']]);
  assert.deepEqual(contents(page), FRESH);
  assertStays(page);
});

for (const reason of ['out_of_scope', 'bypass', 'no_room']) {
  test(`SNP-46: ${reason} did not look at the candidate: it ends no stored pass`, async () => {
    const replies = [pass({ reason }), pass({ sess: 'qk_new' })];
    const page = await open({ url: `${HERE}?qm_token=${NEW}`, local: FRESH, server: (request, n) => replies[n - 1] });
    assert.deepEqual(contents(page), FRESH);
    await page.window.QueueManager.check();
    assert.deepEqual(sent(page), [[NEW, ''], [NEW, '']], 'it may still prove itself');
    assert.equal(page.storage.map.get('qm_checkout'), NEW);
    const empty = await open({ url: `${HERE}?qm_token=${NEW}`, server: () => pass({ reason }) });
    assert.deepEqual(contents(empty), { qm_checkout: NEW }, 'with nothing to lose it is kept');
  });
}

test('SNP-46: no answer is no acceptance; the candidate waits for the next check', async () => {
  for (const reply of ['network', { status: 500, body: '' }, busy]) {
    const server = (request, n) => (n === 1 ? reply : pass({ sess: 'qk_new' }));
    const page = await open({ url: `${HERE}?qm_token=${NEW}`, local: FRESH, server });
    assertStays(page);
    assert.deepEqual(contents(page), FRESH);
    await page.window.QueueManager.check();
    assert.deepEqual(sent(page), [[NEW, ''], [NEW, '']]);
    assert.equal(page.storage.map.get('qm_checkout'), NEW);
  }
});

// ---- clearToken ----------------------------------------------------------------------------------

test('SNP-19 CHK-14: clearToken deletes token, key and time, then redirects', async () => {
  const page = await open({ local: FRESH, cookies: HELD, server: () => queue({ clearToken: true }) });
  assert.equal(page.requests.length, 1);
  assert.equal(destination(page).room, ROOM);
  assert.deepEqual(contents(page), {});
  assert.deepEqual(Object.fromEntries(page.jar.map), {});
});

/** Another tab writes while the question is under way. */
async function checkWhile(change, replies, local = HELD) {
  const page = await open({ local, server: (request, n) => (n === 1 ? undefined : replies[n - 1]) });
  change(page.storage.map);
  page.requests[0].answer(replies[0].body);
  await settle();
  return page;
}

test('clearToken: another tab stored a new pass: it is asked about, once', async () => {
  const change = (map) => map.set('qm_checkout', NEW).set('qmk_checkout', 'qk_new');
  const page = await checkWhile(change, [queue({ clearToken: true }), pass()]);
  assert.deepEqual(sent(page), [[OLD, 'qk_old'], [NEW, 'qk_new']]);
  assert.deepEqual(contents(page), { qm_checkout: NEW, qmk_checkout: 'qk_new' });
  assertStays(page);
  const refused = await checkWhile(change, [queue({ clearToken: true }), queue({ clearToken: true })]);
  assert.equal(refused.requests.length, 2);
  assert.equal(refused.left.length, 1);
  assert.deepEqual(contents(refused), {});
});

test('CHK-13 clearToken: another tab used the same pass first and stored its key', async () => {
  const change = (map) => map.set('qmk_checkout', 'qk_new');
  const elsewhere = queue({ reason: 'session_elsewhere', clearToken: true });
  const page = await checkWhile(change, [elsewhere, pass()], { qm_checkout: OLD });
  assert.deepEqual(sent(page), [[OLD, ''], [OLD, 'qk_new']]);
  assert.deepEqual(contents(page), { qm_checkout: OLD, qmk_checkout: 'qk_new' });
});

test('clearToken: storage that changes with every question does not loop', async () => {
  const page = await open({
    local: HELD,
    server: (request, n, map) => {
      map.set('qm_checkout', `changed-${n}`);
      return queue({ clearToken: true });
    },
  });
  assert.deepEqual(sent(page), [[OLD, 'qk_old'], ['changed-1', 'qk_old']]);
  assert.equal(page.left.length, 1);
  assert.equal(page.storage.map.get('qm_checkout'), 'changed-2', 'what was not sent is not deleted');
});

test('SNP-47 clearToken: a refused candidate does not use up the second question', async () => {
  const page = await open({
    url: `${HERE}?qm_token=${NEW}`,
    local: HELD,
    server: (request, n, map) => {
      if (n === 2) map.set('qmk_checkout', 'qk_new');
      return n === 3 ? pass() : queue({ clearToken: true });
    },
  });
  assert.deepEqual(sent(page), [[NEW, ''], [OLD, 'qk_old'], [OLD, 'qk_new']]);
  assertStays(page);
});

test('C036: the tab that got the key restores the pass another tab has deleted', async () => {
  const change = (map) => map.delete('qm_checkout');
  const page = await checkWhile(change, [pass({ sess: 'qk_new' })], { qm_checkout: OLD });
  assert.deepEqual(contents(page), { qm_checkout: OLD, qmk_checkout: 'qk_new', qmt_checkout: String(T0) });
});

test('clearToken: a cookie copy that differs from what was sent is another pass', async () => {
  const server = (request) => (request.token === NEW ? pass() : queue({ clearToken: true }));
  const page = await open({ local: { qm_checkout: OLD }, cookies: { qm_checkout: NEW }, server });
  assert.deepEqual(sent(page), [[OLD, ''], [NEW, '']]);
  assert.equal(page.window.QueueManager.token(), NEW);
  assertStays(page);
});

// ---- The page's life -----------------------------------------------------------------------------

const auto = (value = 'auto') => ({ tags: [tag({ 'data-qm-spa': value })] });

test('SNP-38: window.QueueManager', async () => {
  const page = await open({ local: HELD });
  const { check, token: stored, roomId, server } = page.window.QueueManager;
  assert.deepEqual([stored(), roomId, server], [OLD, 'checkout', SERVER]);
  await check();
  assert.equal(page.requests.length, 2);
  page.storage.map.clear();
  assert.equal(stored(), null);
});

test('SNP-26 SNP-36: auto checks each change of page', async () => {
  for (const [value, count] of [['auto', 4], ['AUTO', 4], ['Auto', 4], ['true', 1], ['autos', 1], ['', 1]]) {
    const page = await open(auto(value));
    assert.equal(page.history.pushState('s', '', '/a'), 'pushed', 'the value of the original');
    await settle();
    page.history.replaceState(null, '', '/b?x=1');
    await settle();
    page.location.href = `${SITE}/c`;
    await page.fire('popstate');
    assert.equal(page.requests.length, count, value);
    if (count === 4) {
      assert.deepEqual(page.requests.slice(1).map((one) => one.page), [`${SITE}/a`, `${SITE}/b?x=1`, `${SITE}/c`]);
    }
  }
  const parameter = await open({ tags: [tag({ src: `${SERVER}/snippet/qm.js?spa=Auto` })] });
  parameter.history.pushState(null, '', '/a');
  await settle();
  assert.equal(parameter.requests.length, 2);
});

test('SNP-39: without auto the page is checked once', async () => {
  const page = await open();
  page.history.pushState(null, '', '/a');
  await page.fire('popstate');
  assert.equal(page.requests.length, 1);
});

test('SNP-36: the original runs first; its errors pass through unchanged', async () => {
  let seen;
  const page = await open({ ...auto(), server: () => ((seen = page?.location.href), pass()) });
  page.history.pushState(null, '', '/a');
  assert.equal(seen, `${SITE}/a`);
  page.historyError = new RangeError('too many');
  assert.throws(() => page.history.replaceState(null, '', '/b'), (error) => error === page.historyError);
  await settle();
  assert.equal(page.requests.length, 2);
});

test('C127: the same address again, or only another fragment, is no change', async () => {
  const page = await open(auto());
  for (let i = 0; i < 150; i += 1) page.history.replaceState(null, '', `/checkout#${i}`);
  await settle();
  assert.equal(page.requests.length, 1);
});

test('C127: a storm of changes is one check under way and one for where it ended', async () => {
  const page = await open({ ...auto(), server: (request, n) => (n === 1 ? undefined : pass()) });
  for (let i = 0; i < 150; i += 1) page.history.replaceState(null, '', `/find?q=${i}`);
  await settle();
  assert.equal(page.requests.length, 1);
  page.requests[0].answer({ action: 'pass' });
  await settle();
  assert.deepEqual(page.requests.map((request) => request.page), [HERE, `${SITE}/find?q=149`]);
});

for (const [name, options] of [['auto', auto()], ['plain', {}]]) {
  test(`C127: a queue answer for a page the app has left, ${name}`, async () => {
    const replies = { [HERE]: undefined, [`${SITE}/free`]: pass({ reason: 'out_of_scope' }), [`${SITE}/paid`]: queue() };
    for (const [next, left] of [['/free', 0], ['/paid', 1]]) {
      const page = await open({ ...options, server: (request) => replies[request.page] });
      page.history.pushState(null, '', next);
      page.requests[0].answer({ action: 'queue', waitingRoomUrl: '/w/checkout' });
      await settle();
      assert.deepEqual(page.requests.map((request) => request.page), [HERE, SITE + next]);
      assert.equal(page.left.length, left);
    }
  });
}

test('C127: an app that never holds still is queued all the same', async () => {
  let page;
  let n = 0;
  const server = () => {
    if (page) page.history.replaceState(null, '', `/find?q=${(n += 1)}`);
    return queue();
  };
  page = await open({ ...auto(), server: (request, count) => (count === 1 ? undefined : server()) });
  page.history.replaceState(null, '', '/find?q=0');
  page.requests[0].answer({ action: 'queue' });
  await settle();
  assert.ok(page.left.length >= 1);
  assert.ok(page.requests.length <= 3, String(page.requests.length));
});

test('SNP-37 SNP-38: check() while one is under way joins it', async () => {
  const page = await open({ server: () => undefined });
  const { check } = page.window.QueueManager;
  assert.equal(check(), check());
  page.requests[0].answer({ action: 'pass' });
  await check();
  assert.equal(page.requests.length, 1);
});

test('SNP-42: check() never rejects', async () => {
  const page = await open({ server: () => 'network' });
  await page.window.QueueManager.check();
  await (await open({ globals: { fetch: () => { throw new Error('patched'); } } })).window.QueueManager.check();
});

test('a page being prerendered asks nothing until it is shown', async () => {
  const page = await open({ ...auto(), url: `${HERE}?qm_token=${NEW}`, prerendering: true });
  page.history.pushState(null, '', `/a?qm_token=${NEW}`);
  let over = false;
  page.window.QueueManager.check().then(() => (over = true));
  await page.tick(5000);
  assert.deepEqual([page.requests.length, over], [0, false]);
  page.document.prerendering = false;
  await page.fire('prerenderingchange');
  assert.equal(over, true);
  assert.deepEqual(sent(page), [[NEW, '']]);
  await page.fire('prerenderingchange');
  assert.equal(page.requests.length, 1);
});

test('C119: a page brought back by the Back button is checked again', async () => {
  const page = await open({ server: (request, n) => (n === 1 ? pass() : queue()) });
  await page.fire('pageshow', { persisted: false });
  assert.equal(page.requests.length, 1);
  await page.fire('pageshow', { persisted: true });
  assert.equal(destination(page).back, HERE);
  const frozen = await open({ server: (request, n) => (n === 1 ? undefined : queue()) });
  await frozen.fire('pageshow', { persisted: true });
  assert.equal(destination(frozen).room, ROOM, 'the check that was frozen does not stand in the way');
});

test('no visit count opens the door: the same page is queued each time', async () => {
  const page = await open({ server: () => queue() });
  for (let i = 2; i < 20; i += 1) {
    await page.window.QueueManager.check();
    assert.equal(page.left.length, i);
  }
});

test('SNP-35 C132: two copies on one page run once', async () => {
  const page = await open(auto());
  const first = page.window.QueueManager;
  page.run();
  await settle();
  assert.equal(page.window.QueueManager, first);
  assert.equal(page.requests.length, 1);
  page.history.pushState(null, '', '/a');
  await settle();
  assert.equal(page.requests.length, 2);
  const named = await open({ globals: { QueueManager: { id: 'QueueManager' } } });
  assert.equal(named.requests.length, 1, 'an element of that id is not a copy');
});

for (const [name, globals, attributes] of [
  ['document', { document: {} }],
  ['URL', { URL: undefined }],
  ['console', { console: undefined }, { 'data-qm-room': null }],
  ['history', { history: undefined }],
  ['JSON', { JSON: undefined }],
  ['addEventListener', { addEventListener: undefined }],
  ['location', { location: {} }],
  ['setTimeout', { setTimeout: undefined }],
]) {
  test(`SNP-03 SNP-06: a page with a broken ${name} never sees an exception`, async () => {
    const page = await open({ globals, tags: [tag(attributes)] });
    assert.deepEqual(page.left, []);
  });
}

test('SNP-28: a patched console.error does not switch a misconfigured tag on', async () => {
  const page = await open({ tags: [tag({ 'data-qm-room': 'a b' })], globals: { console: { error: () => 1 } } });
  assert.equal(page.window.QueueManager, undefined);
});
