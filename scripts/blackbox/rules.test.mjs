// URL rules over HTTP: saving at the limits, revalidation by proxies, and cost. What matches what is
// proven by the vectors of the core.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SHOP, startServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const scopeOf = async (room, url) => {
  const { json } = await server.get(`/api/v1/check?${new URLSearchParams({ roomId: room, url })}`);
  return json.targeting.scope;
};

test('C056 C060 C061 C063 C064 C069: the door reads rules as the vectors do', async () => {
  for (const [rules, table] of [
    [['/checkout'], { '/checkout': 'in', '/checkout/': 'out', '/checkout?x=1': 'in', '/checkout#a': 'in', '/checkout;x=1': 'in', '/#/checkout': 'out' }],
    [['/checkout*'], { '/checkout': 'in', '/checkoutx': 'in', '/CHECKOUT/': 'in', '/chec%E2%84%AAout': 'out', '/x/checkout': 'out' }],
    [['/checkout?step=2'], { '/checkout?STEP=2': 'in', '/checkout?step=2&utm=x': 'out', '/checkout?step=%32': 'in', '/checkout?': 'out', '/checkout': 'out' }],
    [['/*', '!/free;x'], { '/free': 'in', '/free;x': 'out', '/free;y': 'in' }],
  ]) {
    const room = await server.room({ urlPatterns: rules });
    for (const [path, expected] of Object.entries(table)) assert.equal(await scopeOf(room, SHOP + path), expected, `${rules} ${path}`);
  }
  const pinned = await server.room({ urlPatterns: [`${SHOP}/checkout*`] });
  for (const [site, expected] of [['https://SHOP.example.com', 'in'], [`${SHOP}:443`, 'in'], ['https://user@shop.example.com', 'in'], ['https://shop。example。com', 'in'], [`${SHOP}:8443`, 'out'], ['http://shop.example.com', 'out']]) {
    assert.equal(await scopeOf(pinned, `${site}/checkout`), expected, site);
  }
});

test('C068: at the limits rules are saved, beyond them nothing changes', async () => {
  const room = await server.room({ urlPatterns: ['/before'] });
  const save = (urlPatterns) => server.admin('POST', '/rooms', { id: room, urlPatterns });
  const many = (count) => Array.from({ length: count }, (_, i) => `/p${i}`);
  const long = (letter, count) => [`/${letter.repeat(count - 1)}`];
  for (const rules of [many(26), long('a', 301), long('ก', 301), long('🎟', 301), ['/a*b*c*d*e*f*g*h*i*j*k*'], [''], ['   '], ['checkout'], ['!'], ['!!/x'], ['http://shop.example.com/x'], ['/#/x'], ['/ok', 7], 'x', [null], { 0: '/x' }]) {
    const { status, json } = await save(rules);
    assert.deepEqual([status, json.code], [400, 'invalid_url_patterns'], JSON.stringify(rules).slice(0, 60));
  }
  assert.equal(await scopeOf(room, `${SHOP}/before`), 'in');
  for (const rules of [many(25), long('a', 300), long('ก', 300), long('🎟', 300), ['/a*b*c*d*e*f*g*h*i*j*'], ['/x', '/x'], []]) {
    assert.equal((await save(rules)).status, 200, JSON.stringify(rules).slice(0, 60));
  }
});

test('C071: revalidation through proxies that weaken, list or change the tag', async () => {
  const room = await server.room({ urlPatterns: ['/a*'] });
  const other = await server.room({ urlPatterns: ['/a*'] });
  const ask = (tag, id = room) => server.get(`/api/v1/targeting?roomId=${id}`, { headers: tag === undefined ? {} : { 'If-None-Match': tag } });
  const { etag } = (await ask()).headers;
  for (const [tag, status] of [
    [etag, 304], [`W/${etag}`, 304], [`"x", ${etag}`, 304], [`${etag},"y"`, 304], ['*', 304],
    [etag.replace(/"$/, '-gzip"'), 200], [etag.replaceAll('"', ''), 200], ['', 200], ['"', 200], ['\u00ff', 200],
  ]) {
    const answer = await ask(tag);
    assert.deepEqual([answer.status, answer.headers.etag], [status, etag], tag);
    if (status === 304) assert.equal(answer.text, '');
  }
  assert.notEqual((await ask(undefined, other)).headers.etag, etag, 'rooms differ');
  await server.operate('POST', '/rooms', { id: room, urlPatterns: ['/b*'] });
  assert.equal((await ask(etag)).status, 200, 'a change');
  await server.operate('POST', '/rooms', { id: room, urlPatterns: ['/a*'] });
  const back = await ask(etag);
  assert.deepEqual([back.status, back.json.patterns[0].pattern], [200, '/a*'], 'the same text again is another revision');
  await server.operate('POST', '/rooms', { id: room, name: 'Other name' });
  assert.equal((await ask(back.headers.etag)).status, 304, 'other settings are no change of the rules');
});

test('C067: worst-case rules against a long path cost next to nothing', async () => {
  const rules = Array.from({ length: 25 }, (_, i) => `/*a*a*a*a*a*a*a*a*a*b${i}`.slice(0, 300));
  const room = await server.room({ urlPatterns: rules });
  const url = `${SHOP}/${'a'.repeat(3800)}`;
  const began = performance.now();
  for (let i = 0; i < 20; i += 1) assert.equal(await scopeOf(room, url), 'out');
  const each = (performance.now() - began) / 20;
  assert.ok(each < 50, `${each.toFixed(1)} ms a check, connection included`);
});

test('C065: nothing but the star and the leading ! is special', async () => {
  const room = await server.room({ urlPatterns: ['/a.b', '/a+b', '/(x', '/[y', '/a$', '/a|b', '/a\\d+'] });
  for (const [path, expected] of [['/axb', 'out'], ['/aab', 'out'], ['/(x', 'in'], ['/a', 'out'], ['/b', 'out'], ['/a.b', 'in'], ['/a5', 'out']]) {
    assert.equal(await scopeOf(room, SHOP + path), expected, path);
  }
});
