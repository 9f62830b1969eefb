// The visitor's way through the pages, in real Chromium against the built server and a shop of another origin.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { payloadOf, startServer, until } from '../blackbox/harness.mjs';
import { startShop } from '../demo/shop.mjs';
import { arrives, launch, place, shows, withVisitor } from './browser.mjs';

let server;
let shop;
let browser;
before(async () => {
  server = await startServer({ TRUST_PROXY: null });
  shop = await startShop({ server: server.url, room: 'demo' });
  browser = await launch();
  await server.room({ id: 'demo', targetUrl: `${shop.url}/checkout`, urlPatterns: ['/checkout*'] });
});
after(async () => {
  await browser?.close();
  await shop?.close();
  await server?.stop();
});

/** A room of its own whose visitors go to the shop's front page, which nobody has to queue for. */
const room = (fields = {}) => server.room({ targetUrl: `${shop.url}/`, ...fields });
const waiting = (id) => `${server.url}/w/${id}`;
const isWaiting = (id) => (url) => url.origin === server.url && url.pathname === `/w/${id}`;
const isShop = (path) => (url) => url.origin === shop.url && url.pathname === path;
const stored = (page, key) => page.evaluate((name) => localStorage.getItem(name), key);

test('from the shop through the waiting room and back, with the pass put away', async () => {
  await withVisitor(browser, {}, async (context, page) => {
    await page.goto(`${shop.url}/`);
    await shows(page, 'h1', /lamps/i);
    await page.click('text=Buy it');
    await arrives(page, isWaiting('demo'));
    assert.equal(new URL(page.url()).searchParams.get('qm_return'), `${shop.url}/checkout`);
    assert.equal(await place(page), 1);
    await server.flush('demo');
    await arrives(page, isShop('/checkout'));
    await page.waitForURL(`${shop.url}/checkout`);
    await shows(page, 'h1', /checkout/i);
    const key = await until(() => stored(page, 'qmk_demo'), 'the key of the door');
    assert.match(key, /^qk_/);
    assert.equal(payloadOf(await stored(page, 'qm_demo')).r, 'demo');

    // The tag asks again on every page; with the key the visitor stays inside.
    for (const go of [() => page.reload(), () => page.goto(`${shop.url}/checkout/thank-you`)]) {
      const answered = page.waitForResponse((r) => r.url().includes('/api/v1/check'));
      await go();
      assert.equal((await (await answered).json()).action, 'pass');
      assert.equal(new URL(page.url()).origin, shop.url);
    }
    assert.equal(await stored(page, 'qmk_demo'), key);
    assert.equal((await server.listed('demo')).sessions, 1);
  });
});

test('a second tab shows the same place', async () => {
  const id = await room();
  await server.visitor().join(id);
  await withVisitor(browser, {}, async (context, page) => {
    await page.goto(waiting(id));
    assert.equal(await place(page), 2);
    const second = await context.newPage();
    await second.goto(waiting(id));
    assert.equal(await place(second), 2);
    assert.equal((await server.listed(id)).waiting, 2, 'no second place was taken');
    await server.flush(id);
    assert.deepEqual(await Promise.all([place(page, 1), place(second, 1)]), [1, 1]);
  });
});

test('a reload and a closed tab keep the place', async () => {
  const id = await room();
  await withVisitor(browser, {}, async (context, page) => {
    await page.goto(waiting(id));
    assert.equal(await place(page), 1);
    await server.visitor().join(id);
    await page.reload();
    assert.equal(await place(page), 1);
    await page.close();
    const again = await context.newPage();
    await again.goto(waiting(id));
    assert.equal(await place(again), 1);
    assert.equal((await server.listed(id)).waiting, 2);
  });
});

test('offline the page says so and keeps the place, and comes back by itself', async () => {
  const id = await room();
  const first = server.visitor();
  await first.join(id);
  await withVisitor(browser, { mayComplain: /net::ERR_/ }, async (context, page) => {
    await page.goto(waiting(id));
    assert.equal(await place(page), 2);
    await context.setOffline(true);
    await shows(page, '#qm-offline', /no connection/i);
    assert.equal(await place(page), 2, 'the last known place stays');
    await first.leave();
    await context.setOffline(false);
    assert.equal(await place(page, 1), 1);
    await page.locator('#qm-offline').waitFor({ state: 'hidden' });
    assert.equal((await server.listed(id)).waiting, 1, 'no second place was taken');
  });
});

test('without JavaScript there is a place, its number and the way in', async () => {
  const id = await room();
  await server.visitor().join(id);
  await withVisitor(browser, { javaScriptEnabled: false }, async (context, page) => {
    await page.goto(waiting(id));
    // A first visit offers the place as a link or takes it with the page; both are fine.
    const offer = page.locator('#qm-static').getByText('Take a place in line');
    if (await offer.count()) await offer.click();
    await shows(page, '#qm-static', /number 2 in line/i);
    await server.flush(id, 2);
    await arrives(page, isShop('/'));
    assert.equal(payloadOf(new URL(page.url()).searchParams.get('qm_token')).r, id);
    assert.equal((await server.listed(id)).waiting, 0);
  });
});

test('a scheduled drop counts down and opens', async () => {
  const id = await room({ opensAt: Date.now() + 6_000, ratePerMinute: 6_000 });
  await withVisitor(browser, {}, async (context, page) => {
    await page.goto(waiting(id));
    const first = await shows(page, '#qm-countdown', /^00:0\d$/);
    await until(async () => (await page.locator('#qm-countdown').innerText()).trim() < first, 'a smaller number');
    await shows(page, '#qm-heading', /doors open soon/i);
    await arrives(page, isShop('/'));
  });
});

test('a message of the operator appears and goes without a reload', async () => {
  const id = await room();
  await withVisitor(browser, {}, async (context, page) => {
    let loads = 0;
    page.on('load', () => (loads += 1));
    await page.goto(waiting(id));
    await place(page);
    const message = 'Sizes 42 and 43 are <b>gone</b>';
    await server.operate('POST', '/rooms', { id, branding: { message } });
    assert.equal(await shows(page, '#qm-message-text', /sizes/i), message, 'as text, not as markup');
    await server.operate('POST', '/rooms', { id, branding: {} });
    await page.locator('#qm-message').waitFor({ state: 'hidden' });
    assert.equal(loads, 1);
  });
});

test('a paused room says so and keeps the place', async () => {
  const id = await room();
  await withVisitor(browser, {}, async (context, page) => {
    await page.goto(waiting(id));
    assert.equal(await place(page), 1);
    await server.operate('POST', `/rooms/${id}/state`, { state: 'paused' });
    await shows(page, '#qm-status', /paused/i);
    assert.equal(await place(page), 1);
    await server.operate('POST', `/rooms/${id}/state`, { state: 'active' });
    await shows(page, '#qm-status', /keep this page open/i);
  });
});

test('no page complains when it opens, on a desk or in a hand', async () => {
  const id = await room({ name: 'Drop <3', branding: { title: 'Hold on', accent: '#aa0044' } });
  for (const viewport of [
    { width: 1280, height: 800 },
    { width: 360, height: 640 },
  ]) {
    await withVisitor(browser, { viewport, colorScheme: 'dark', reducedMotion: 'reduce' }, async (context, page) => {
      for (const [address, heading] of [
        [waiting(id), 'Hold on'],
        [`${waiting(id)}?lang=ar`, 'Hold on'],
        [`${server.url}/`],
        [`${shop.url}/`, 'Lamps'],
      ]) {
        await page.goto(address, { waitUntil: 'load' });
        assert.notEqual(await page.title(), '', address);
        if (heading) await shows(page, 'h1', new RegExp(heading));
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(overflow <= 0, `${address} is ${overflow} pixels too wide at ${viewport.width}`);
      }
    });
  }
});
