// The waiting page in the field: return addresses, framing, crawlers, prefetch, no script, no cookies.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SHOP, payloadOf, startServer, until, withServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

function configOf(page) {
  return JSON.parse(/<script type="application\/json" id="qm-config">(.*?)<\/script>/s.exec(page.text)[1]);
}

async function returnOf(own, room, url, headers = {}) {
  const page = await own.get(`/w/${room}?qm_return=${typeof url === 'string' ? encodeURIComponent(url) : url.raw}`, { headers });
  assert.equal(page.status, 200);
  return configOf(page).returnUrl;
}

test('C114 C115: return addresses are read as a browser reads them, and dropped when unclear', async () => {
  const room = await server.room({ returnOrigins: ['https://staging.example.com:8443'] });
  for (const [url, expected] of [
    ['https://shop.example.com/x', 'https://shop.example.com/x'],
    ['HTTPS://SHOP.EXAMPLE.COM:443/x', 'https://shop.example.com/x'],
    ['https://shop.example.com:/x', 'https://shop.example.com/x'],
    ['https://shop。example。com/x', 'https://shop.example.com/x'],
    ['https://staging.example.com:8443/y?z=1#t', 'https://staging.example.com:8443/y?z=1#t'],
    ['https://shop.example.com/%0d%0aSet-Cookie:a=b', 'https://shop.example.com/%0d%0aSet-Cookie:a=b'],
  ]) {
    assert.equal(await returnOf(server, room, url), expected, url);
  }
  for (const url of [
    'java\tscript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', '\r\nLocation: x', ' https://shop.example.com/', 'https://shop.exa\tmple.com/',
    'blob:https://shop.example.com/1', 'http://shop.example.com/', 'https://shop.example.com./x', 'https://shop.example.com:8443/x', 'https://www.shop.example.com/x',
    'https://shop.example.com@evil.example/', 'https://a:b@shop.example.com/', '//shop.example.com/', '/\\shop.example.com', 'https:shop.example.com', 'x', '',
    'https://shop.example.com.evil.example/', 'https://evil.example\\@shop.example.com/',
  ]) {
    assert.equal(await returnOf(server, room, url), undefined, JSON.stringify(url));
  }
  for (const raw of ['%ff%fe', '%', '%00', 'https://shop.example.com/%E0%A4%A']) {
    const page = await server.get(`/w/${room}?qm_return=${raw}`);
    assert.equal(page.status, 200, raw);
    assert.doesNotMatch(page.headers['content-security-policy'] ?? '', /[\r\n]/);
  }
  for (const [origins, code] of [[['shop.example.com'], 400], [['https://shop.example.com/x'], 400], [['https://Shop.Example.com:443'], 200], [['https://shop.example.com/'], 200]]) {
    assert.equal((await server.admin('POST', '/rooms', { id: room, returnOrigins: origins })).status, code, origins[0]);
  }
});

test('C116: the pass goes into the query before the fragment and replaces an older one', async () => {
  for (const [target, before, afterwards] of [
    ['/buy?x=1#/step/2', '/buy?x=1&qm_token=', '#/step/2'],
    ['/buy?qm_token=OLD&x=1', '/buy?x=1&qm_token=', ''],
    ['/buy?x=1&x=2&y', '/buy?x=1&x=2&y&qm_token=', ''],
    ['/buy?', '/buy?qm_token=', ''],
    ['/buy?q=%E0%B8%81&r=a+b', '/buy?q=%E0%B8%81&r=a+b&qm_token=', ''],
    ['/buy#qm_token=z', '/buy?qm_token=', '#qm_token=z'],
  ]) {
    const room = await server.room({ targetUrl: SHOP + target });
    const visitor = server.visitor();
    await visitor.join(room);
    await server.flush(room);
    const { redirectUrl, token } = (await visitor.status()).json;
    assert.equal(redirectUrl, `${SHOP}${before}${token}${afterwards}`, target);
  }
});

test('C117: with nowhere to go the page says so, and a destination set later arrives without a reload', async () => {
  const room = await server.room({ targetUrl: null });
  const visitor = server.visitor();
  await visitor.join(room);
  assert.equal(await returnOf(server, room, `${SHOP}/`), undefined);
  const stream = await visitor.listen(`/events?token=${visitor.token}`);
  await stream.next();
  await server.flush(room);
  assert.equal((await stream.next((d) => d.passed, 'the pass')).data.redirectUrl, undefined);
  assert.equal((await visitor.check(room)).headers['access-control-allow-origin'], '*');
  assert.ok((await server.operate('GET', '/health')).openOriginRooms.includes(room));
  await server.operate('POST', '/rooms', { id: room, targetUrl: `${SHOP}/sale` });
  const { data } = await stream.next((d) => d.redirectUrl, 'the destination');
  assert.ok(data.redirectUrl.startsWith(`${SHOP}/sale?qm_token=`));
  stream.close();
});

test("C118: the queue's own paths are no destination, also where the host is the shop's", async () => {
  await withServer({ PUBLIC_ORIGIN: 'https://queue.example.com' }, async (own) => {
    const room = await own.room({ targetUrl: 'https://queue.example.com/', returnOrigins: ['https://alias.example.com'] });
    for (const path of [`/w/${room}`, `/w/${room}?qm_return=x`, '/__qm/events', '/api/admin', '/api/v1/check', '/events', '/x/../w/a', '/%77/../w/a']) {
      assert.equal(await returnOf(own, room, `https://queue.example.com${path}`), undefined, path);
    }
    assert.equal(await returnOf(own, room, 'https://queue.example.com/buy'), 'https://queue.example.com/buy');
    const aliased = await returnOf(own, room, `https://alias.example.com/w/${room}`, { Host: 'alias.example.com' });
    assert.equal(aliased, undefined, 'another name of this server');
  });
});

test('C120 C123: not indexed, not stored, framed only by the sites of the room', async () => {
  const room = await server.room({ returnOrigins: ['https://brand.example'] });
  const page = await server.visitor().page(`/w/${room}`);
  assert.match(page.headers['x-robots-tag'], /noindex/);
  assert.match(page.text, /<meta name="robots" content="noindex">/);
  assert.equal(page.headers['cache-control'], 'no-store');
  const framers = /frame-ancestors ([^;]*)/.exec(page.headers['content-security-policy'])[1].trim().split(' ');
  assert.deepEqual(framers.sort(), ["'self'", 'https://brand.example', SHOP]);
  for (const path of ['/w/nowhere', '/w/a%20b', '/']) {
    const { headers } = await server.visitor().page(path);
    assert.match(headers['content-security-policy'], /frame-ancestors '(self|none)'/, path);
    assert.match(headers['x-robots-tag'], /noindex/, path);
  }
});

test('a prefetch takes no place, is not kept, and does not count as having seen the pass', async () => {
  const room = await server.room();
  for (const headers of [{ 'Sec-Purpose': 'prefetch' }, { 'Sec-Purpose': 'prefetch;prerender' }, { Purpose: 'prefetch' }, { 'X-Moz': 'prefetch' }]) {
    for (const query of ['', '?nojs=1']) {
      const answer = await server.get(`/w/${room}${query}`, { headers });
      assert.deepEqual([answer.status, answer.headers['cache-control'], answer.cookies.length], [503, 'no-store', 0], JSON.stringify(headers));
    }
  }
  const head = await server.request('HEAD', `/w/${room}?nojs=1`);
  assert.deepEqual([head.status, head.text, head.cookies.length], [200, '', 0]);
  assert.equal((await server.listed(room)).nextTicket, 1);
});

test('looking at the page takes no place, however often', async () => {
  const room = await server.room();
  for (let i = 0; i < 5; i += 1) await server.visitor().page(`/w/${room}?lang=${['en', 'xx', '', '../', '<b>'][i]}`);
  assert.equal((await server.listed(room)).nextTicket, 1);
});

test('C121: frames with a time carry the time of the server', async () => {
  const opensAt = Date.now() + 600_000;
  const room = await server.room({ opensAt });
  const visitor = server.visitor();
  const joined = (await visitor.join(room)).json;
  const status = (await visitor.status()).json;
  for (const frame of [joined, status]) {
    assert.equal(frame.opensAt, opensAt);
    assert.ok(Math.abs(frame.now - Date.now()) < 5_000);
  }
  assert.ok(Math.abs(configOf(await visitor.page(`/w/${room}`)).now - Date.now()) < 5_000);
});

const refreshOf = (page) => /<noscript><meta http-equiv="refresh" content="([^"]*)"><\/noscript>/.exec(page.text)?.[1].replaceAll('&amp;', '&');

/** Follows what a browser without script would do next. */
async function step(visitor, room, page) {
  const [, to = `/w/${room}?nojs=2`] = /^\d+(?:;url=(.*))?$/.exec(refreshOf(page));
  const next = await visitor.page(to);
  return next.status === 303 ? visitor.page(next.headers.location) : next;
}

test('C122: without script the visitor gets a place, sees it and moves on', async () => {
  const room = await server.room();
  const visitor = server.visitor();
  const back = `${SHOP}/buy?x=1`;
  let page = await visitor.page(`/w/${room}?lang=de&qm_return=${encodeURIComponent(back)}`);
  assert.match(refreshOf(page), /^10;url=\/w\/.*nojs=1/);
  page = await step(visitor, room, page);
  assert.equal(payloadOf(visitor.jar.get(`qm_${room}`)).n, 1);
  assert.match(page.text, /<html lang="de"/);
  assert.match(refreshOf(page), /^10$/);
  await server.flush(room);
  page = await visitor.page(`/w/${room}?nojs=2&lang=de&qm_return=${encodeURIComponent(back)}`);
  assert.ok(refreshOf(page).startsWith(`0;url=${back}&qm_token=`), refreshOf(page));
  assert.match(page.text, /<a href="https:\/\/shop\.example\.com\/buy\?x=1&amp;qm_token=/);
});

test('C122: without script a lost place is told and a new one taken', async () => {
  const room = await server.room({ passedTtlSec: 1 });
  const visitor = server.visitor();
  let page = await step(visitor, room, await visitor.page(`/w/${room}`));
  await server.flush(room);
  page = await until(async () => {
    const seen = await visitor.page(`/w/${room}?nojs=2`);
    return /nojs=1/.test(refreshOf(seen)) && seen;
  }, 'the end of the pass');
  assert.equal(configOf(page).lapsed, 'expired');
  assert.match(page.text, /time to enter ran out/);
  await step(visitor, room, page);
  assert.equal(payloadOf(visitor.jar.get(`qm_${room}`)).n, 2);
  await server.operate('POST', `/rooms/${room}/purge`, {});
  page = await visitor.page(`/w/${room}?nojs=2`);
  assert.equal(configOf(page).lapsed, 'reset');
  assert.match(page.text, /reset by the team/);
});

test('C122 C123: where cookies do not come back the page says so and stops taking places', async () => {
  const room = await server.room();
  const first = await server.get(`/w/${room}?nojs=1`);
  assert.deepEqual([first.status, first.headers['cache-control']], [303, 'no-store']);
  for (let i = 0; i < 4; i += 1) {
    const page = await server.get(first.headers.location);
    assert.match(page.text, /blocks cookies/);
    assert.equal(refreshOf(page), undefined, 'no refresh that would take the next place');
  }
  assert.equal((await server.listed(room)).nextTicket, 2);
});

test('C122: refusals without script are pages that try again', async () => {
  await withServer({ JOIN_LIMIT_PER_MIN: '1' }, async (own) => {
    const room = await own.room();
    const visitor = own.visitor();
    await visitor.page(`/w/${room}?nojs=1`);
    const busy = await own.visitor({ ip: visitor.ip }).page(`/w/${room}?nojs=1`);
    assert.equal(busy.status, 429);
    assert.match(busy.headers['content-type'], /^text\/html/);
    assert.match(busy.headers['retry-after'], /^\d+$/);
    assert.match(refreshOf(busy), /^\d+;url=.*nojs=1/);
  });
});

test('C124: assets are found by their digest for a year, others are not and are not kept', async () => {
  const page = await server.visitor().page(`/w/${await server.room()}`);
  const paths = [...page.text.matchAll(/(?:href|src)="(\/assets\/waiting-[^"]+)"/g)].map((m) => m[1]);
  assert.equal(paths.length, 2);
  for (const path of paths) {
    const asset = await server.get(path);
    assert.deepEqual([asset.status, asset.headers['cache-control']], [200, 'public, max-age=31536000, immutable']);
    assert.equal((await server.get(path, { headers: { 'If-None-Match': asset.headers.etag } })).status, 304);
    for (const other of [path.replace(/-.{22}/, `-${'A'.repeat(22)}`), path.replace(/-.{22}/, ''), `${path}/`, `${path}x`]) {
      const missing = await server.get(other);
      assert.deepEqual([missing.status, missing.headers['cache-control']], [404, 'no-store'], other);
    }
  }
});
