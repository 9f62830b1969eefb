// Visitors with unusual browsers, in real Chromium: blocked storage and cookies, wrong clocks, sleep, Back.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startServer, until } from '../blackbox/harness.mjs';
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

const room = (fields = {}) => server.room({ targetUrl: `${shop.url}/`, ...fields });
const waiting = (id) => `${server.url}/w/${id}`;
const isShop = (url) => url.origin === shop.url;

test('C122: where localStorage throws, cookies keep the place', async () => {
  const id = await room();
  await server.visitor().join(id);
  await withVisitor(browser, {}, async (context, page) => {
    await context.addInitScript(() => {
      const denied = () => {
        throw new DOMException('denied', 'SecurityError');
      };
      Object.defineProperty(window, 'localStorage', { get: denied });
    });
    await page.goto(waiting(id));
    assert.equal(await place(page), 2);
    await page.reload();
    assert.equal(await place(page), 2);
    assert.equal((await server.listed(id)).nextTicket, 3);
    await server.flush(id, 2);
    await arrives(page, isShop);
  });
});

test('C122 C123: where cookies do not come back the page says so and takes one place only', async () => {
  const id = await room();
  await withVisitor(browser, {}, async (context, page) => {
    await context.addInitScript(() => Object.defineProperty(document, 'cookie', { get: () => '', set: () => {} }));
    await context.route('**/api/v1/join', async (route) => {
      const response = await route.fetch();
      const { 'set-cookie': _, ...headers } = response.headers();
      await route.fulfill({ response, headers });
    });
    await page.goto(waiting(id));
    assert.equal(await place(page), 1);
    await shows(page, '#qm-cookies', /cookies/i);
    for (let i = 0; i < 3; i += 1) {
      await page.reload();
      assert.equal(await place(page), 1);
    }
    assert.equal((await server.listed(id)).nextTicket, 2, 'no ticket after ticket');
  });
});

for (const hours of [2, -2]) {
  test(`C121: on a clock ${hours} hours off, countdown and opening time agree with each other`, async () => {
    const opensAt = Date.now() + 600_000;
    const id = await room({ opensAt });
    await withVisitor(browser, { timezoneId: 'UTC' }, async (context, page) => {
      await context.addInitScript((ms) => {
        const RealDate = Date;
        globalThis.Date = class extends RealDate {
          constructor(...given) {
            super(...(given.length ? given : [RealDate.now() + ms]));
          }
          static now() {
            return RealDate.now() + ms;
          }
        };
      }, hours * 3_600_000);
      await page.goto(waiting(id));
      await shows(page, '#qm-countdown', /^(10:00|09:[3-5]\d)$/);
      const own = new Intl.DateTimeFormat('en', { timeStyle: 'short', timeZone: 'UTC' }).format(opensAt + hours * 3_600_000);
      const minute = own.replace(/[\u202f ]/g, '\\s');
      await shows(page, '#qm-opens', new RegExp(minute));
    });
  });
}

test('C109: a page that slept through its turn moves on when it wakes up', async () => {
  const id = await room();
  await withVisitor(browser, {}, async (context, page) => {
    await page.goto(waiting(id));
    assert.equal(await place(page), 1);
    const devtools = await context.newCDPSession(page);
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
    await server.flush(id);
    await until(async () => (await server.listed(id)).waiting === 0, 'the pass');
    await devtools.send('Page.setWebLifecycleState', { state: 'active' });
    await arrives(page, isShop);
  });
});

test('C119: Back from the waiting page leaves to the page before, Back from the shop does not queue again', async () => {
  await withVisitor(browser, {}, async (context, page) => {
    await page.goto(`${shop.url}/`);
    await page.click('text=Buy it');
    await arrives(page, (url) => url.origin === server.url);
    assert.equal(await place(page), 1);
    await page.goBack();
    await arrives(page, (url) => isShop(url) && url.pathname === '/');
    await page.click('text=Buy it');
    assert.equal(await place(page), 1, 'the same place');
    await server.flush('demo');
    await page.waitForURL(`${shop.url}/checkout`);
    await page.goBack();
    await arrives(page, (url) => isShop(url) && url.pathname === '/');
    assert.equal((await server.listed('demo')).nextTicket, 2);
  });
});
