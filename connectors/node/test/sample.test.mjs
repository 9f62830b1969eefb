// The guide's Express example, cut out of the page and run as printed, with the real queue server.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test, { after, before } from 'node:test';

import { PUBLIC_API_KEY, ROOT, freePort, mint, send, startServer } from '../../../scripts/blackbox/harness.mjs';
import { frameworks, linkFrameworks, project } from './installed.mjs';

const SITE = 'https://shop.example.com';
let server;
before(async () => {
  server = await startServer();
  await frameworks();
});
after(() => server?.stop());

/** The example as its reader would start it: {port, log}. */
async function start(t, env) {
  const guide = readFileSync(path.join(ROOT, 'docs/integration.md'), 'utf8');
  const code = /```js\n(\/\/ shop\.mjs[^]*?)```/.exec(guide)[1];
  const folder = project();
  linkFrameworks(folder);
  writeFileSync(path.join(folder, 'shop.mjs'), code);
  const port = await freePort();
  const full = { PATH: process.env.PATH, QM_SERVER: server.url, QM_PUBLIC_API_KEY: PUBLIC_API_KEY, SITE, PORT: String(port), ...env };
  const child = spawn(process.execPath, ['shop.mjs'], { cwd: folder, env: full, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const shop = { port, log: '' };
  await new Promise((resolve, reject) => {
    child.stderr.on('data', (part) => {
      shop.log += part;
    });
    child.stdout.on('data', (part) => String(part).includes('listening') && resolve());
    child.on('exit', (code_) => reject(new Error(`the example ended with ${code_}: ${shop.log}`)));
  });
  return shop;
}

const ask = (shop, visitor, target, { method = 'GET', ...headers } = {}) =>
  send(shop.port, method, target, { ip: visitor.ip, headers: { 'User-Agent': visitor.agent, ...headers } });

test('a visit through the example', async (t) => {
  const [room, other] = [await server.room(), await server.room()];
  const shop = await start(t, { QM_ROOM: room });
  const visitor = server.visitor();
  const queued = await ask(shop, visitor, '/checkout/a?b=1', { Host: 'evil.example' });
  assert.deepEqual([queued.status, queued.headers['cache-control']], [302, 'no-store']);
  assert.equal(queued.headers.location, `${server.url}/w/${room}?qm_return=${encodeURIComponent(`${SITE}/checkout/a?b=1`)}`);
  assert.equal((await ask(shop, visitor, '/about')).text, 'the shop');

  await visitor.join(other);
  const foreign = visitor.token;
  await visitor.join(room);
  await server.flush(room);
  const pass = `/checkout/a?b=1&qm_token=${visitor.token}`;
  assert.equal((await ask(shop, visitor, pass, { 'Sec-Purpose': 'prefetch' })).status, 503);
  assert.equal((await ask(shop, visitor, pass, { method: 'HEAD' })).status, 503);
  const back = await ask(shop, visitor, pass);
  assert.deepEqual([back.status, back.headers.location], [302, `${SITE}/checkout/a?b=1`]);
  const [cookie] = back.cookies;
  assert.deepEqual([cookie.name, cookie.value, cookie['max-age']], [`qm_${room}`, visitor.token, '86400']);
  assert.deepEqual([cookie.httponly, cookie.samesite, cookie.secure], [true, 'Lax', true]);

  const held = { Cookie: `a=1; qm_${room}="${visitor.token}"; b=2` };
  assert.equal((await ask(shop, visitor, '/checkout/a', held)).text, 'the shop');
  const stray = await ask(shop, visitor, `/checkout/a?qm_token=${foreign}`, held);
  assert.deepEqual([stray.status, stray.headers.location, stray.cookies], [302, `${SITE}/checkout/a`, []]);

  await visitor.leave();
  const over = await ask(shop, visitor, '/checkout/a', held);
  assert.deepEqual([over.status, over.cookies[0]?.['max-age']], [302, '0']);
});

test('outages, a wrong key and odd input', async (t) => {
  const room = await server.room();
  const wrong = await start(t, { QM_ROOM: room, QM_PUBLIC_API_KEY: 'wrong' });
  const refused = await ask(wrong, server.visitor(), '/checkout');
  assert.deepEqual([refused.text, refused.headers['x-qm-failover']], ['the shop', 'http-401']);
  assert.match(wrong.log, /THE ROOM IS OPEN/);
  const down = await start(t, { QM_ROOM: room, QM_SERVER: 'http://127.0.0.1:9' });
  assert.equal((await ask(down, server.visitor(), '/checkout')).headers['x-qm-failover'], 'unreachable');
  const shop = await start(t, { QM_ROOM: room });
  const long = 'x'.repeat(5000);
  for (const target of [
    '/checkout?qm_token=%ff',
    `/checkout?qm_token=${long}`,
    `/checkout?q=${long}`,
    '/checkout//evil.example',
    '/checkout?qm_token=',
  ]) {
    for (const value of ['', '"', 'a.b', long, mint({ r: 'other', n: 1, g: 1, iat: Date.now() })]) {
      const got = await ask(shop, server.visitor(), target, { Cookie: `qm_${room}=${value}` });
      assert.equal(got.status, 302, `${target.slice(0, 40)} ${value.slice(0, 20)}: ${got.status}`);
      assert.ok(got.headers.location.startsWith(`${server.url}/w/${room}`), got.headers.location);
    }
  }
});
