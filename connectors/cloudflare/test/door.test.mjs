// The Worker in workerd with the real queue server behind it and a real site: verdicts, cookies,
// outages, load, and what passes through untouched. The server is QM_BIN.

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';
import { PUBLIC_API_KEY, SHOP, startServer, until } from '../../../scripts/blackbox/harness.mjs';
import { BUILT, World } from './world.mjs';

const BROWSER = { 'Sec-Fetch-Dest': 'document', 'Sec-Fetch-Mode': 'navigate', 'User-Agent': 'Mozilla/5.0 Chrome/130.0' };

/** Passes what the Worker asks on to the real server. */
const passOn = (server) => (request, response, url) => {
  const headers = { ...request.headers, host: `127.0.0.1:${server.port}` };
  const onward = http.request({ host: '127.0.0.1', port: server.port, method: request.method, path: url.pathname + url.search, headers, agent: false });
  onward.on('error', () => request.socket.destroy()).on('response', (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  request.pipe(onward);
};

for (const form of BUILT)
  describe(`the door: ${form}`, () => {
    let server;
    let world;
    const room = `edge-${form}`;
    before(async () => {
      server = await startServer({});
      await server.room({ id: room, targetUrl: `${SHOP}/`, tagOrigins: [SHOP] });
      const vars = { QM_ROOM: room, QM_PUBLIC_API_KEY: PUBLIC_API_KEY };
      world = await World.start({ form, vars, queue: passOn(server) });
      world.targeting = (response, request) => passOn(server)(request, response, new URL(request.url, 'http://x'));
      world.verify = world.targeting;
    });
    after(async () => {
      await world?.stop();
      await server?.stop();
    });
    const visit = (path, { cookie, ...more } = {}) =>
      world.visit(`${SHOP}${path}`, { ...more, headers: { ...BROWSER, ...(cookie ? { Cookie: cookie } : {}), ...more.headers } });
    const sends = (answer) => {
      assert.equal(answer.status, 302, answer.text);
      return new URL(answer.headers.location);
    };

    test('a visitor queues, is released, goes in, stays in and is shut out when over', async () => {
      const visitor = server.visitor();
      const address = visitor.ip;
      const away = sends(await visit('/checkout?step=2', { address }));
      assert.equal(away.pathname, `/w/${room}`);
      assert.equal(away.searchParams.get('qm_return'), `${SHOP}/checkout?step=2`);
      assert.equal((await visitor.join(room)).status, 200);
      const early = await visit(`/checkout?qm_token=${visitor.token}`, { address });
      assert.equal(sends(early).pathname, `/w/${room}`, 'a place in line does not open');
      assert.deepEqual(early.cookies, [], 'and is not stored');
      await server.flush(room, 1);
      const back = await visit(`/checkout?step=2&qm_token=${visitor.token}`, { address });
      assert.equal(sends(back).href, `${SHOP}/checkout?step=2`);
      assert.equal(back.cookies.length, 1);
      const cookie = back.cookies[0].split(';')[0];
      assert.equal(cookie, `qm_${room}=${visitor.token}`);
      for (let i = 0; i < 3; i += 1) {
        const inside = await visit('/checkout', { address, cookie });
        assert.equal(inside.status, 200);
        assert.equal(inside.headers['x-qm-failover'], undefined);
      }
      await server.operate('POST', `/rooms/${room}/eject`, { ticket: Number(JSON.parse(Buffer.from(visitor.token.split('.')[0], 'base64url')).n) });
      const over = await visit('/checkout', { address, cookie });
      assert.equal(sends(over).pathname, `/w/${room}`);
      assert.match(over.cookies[0], /=; Max-Age=0/);
    });

    test('a pass copied to another address does not open', async () => {
      const visitor = server.visitor();
      await visitor.join(room);
      await server.flush(room, 1);
      const thief = await visit(`/checkout?qm_token=${visitor.token}`, { address: '198.51.100.77' });
      assert.equal(sends(thief).pathname, `/w/${room}`);
      assert.deepEqual(thief.cookies, []);
    });

    test('500 at once: nobody goes in, and each gets the way back to their own page', async () => {
      const all = await Promise.all(Array.from({ length: 500 }, (_, i) => visit(`/p/${i}`, { address: `198.19.${i >> 8}.${i & 255}` })));
      for (const [i, answer] of all.entries()) assert.equal(sends(answer).searchParams.get('qm_return'), `${SHOP}/p/${i}`);
    });

    test('a new rule takes effect without a deploy', async () => {
      await server.operate('POST', '/rooms', { id: room, urlPatterns: ['/checkout*'] });
      await until(async () => (await visit('/about')).status === 200, 'the page out of scope is open');
      assert.equal((await visit('/checkout')).status, 302);
      await server.operate('POST', '/rooms', { id: room, urlPatterns: [] });
      await until(async () => (await visit('/about')).status === 302, 'the page is queued for again');
    });

    test('the installation is verified once, with the key and the site', async () => {
      const before = world.verified.length;
      assert.equal(before, 1);
      assert.equal(world.verified[0].searchParams.get('origin'), SHOP);
      assert.equal(world.verified[0].searchParams.get('connector'), 'cloudflare');
    });

    test('redirects, bodies, ranges and streams of the site pass untouched', async () => {
      await server.operate('POST', '/rooms', { id: room, state: 'bypass' });
      world.site = (request, response) => {
        if (request.url.endsWith('/moved')) return response.writeHead(302, { Location: '/there', 'Set-Cookie': ['a=1', 'b=2'] }).end();
        if (request.url.endsWith('/part')) return response.writeHead(206, { 'Content-Range': 'bytes 0-2/9', Range: request.headers.range }).end('abc');
        let bytes = 0;
        request.on('data', (part) => {
          bytes += part.length;
        });
        return request.on('end', () => response.end(`${request.method} ${bytes}`));
      };
      const moved = await visit('/moved');
      assert.equal(moved.status, 302);
      assert.equal(moved.headers.location, '/there');
      assert.deepEqual(moved.cookies, ['a=1', 'b=2']);
      assert.equal((await visit('/part', { headers: { Range: 'bytes=0-2' } })).status, 206);
      const upload = Buffer.alloc(10 << 20, 7);
      assert.equal((await visit('/upload', { method: 'POST', body: upload })).text, `POST ${upload.length}`);
      assert.equal((await visit('/head', { method: 'HEAD' })).status, 200);
      await server.operate('POST', '/rooms', { id: room, state: 'active' });
    });

    test('the connection breaks: everybody goes in, and the answer says so', async () => {
      world.site = (_, response) => response.end('site');
      const standIn = world.queue;
      world.queue = (request) => request.socket.destroy();
      const open = await visit('/checkout');
      assert.equal(open.status, 200);
      assert.equal(open.headers['x-qm-failover'], 'unreachable');
      world.queue = standIn;
      assert.equal((await visit('/checkout')).status, 302, 'and is shut again at once');
    });

    test('a server that sends its answer too slowly is a timeout of two seconds', async () => {
      const standIn = world.queue;
      let closed;
      const gone = new Promise((resolve) => {
        closed = resolve;
      });
      world.queue = (request, response) => {
        response.writeHead(200);
        response.write('{"action":');
        response.on('close', closed);
      };
      const began = Date.now();
      const open = await visit('/checkout');
      const took = Date.now() - began;
      assert.equal(open.headers['x-qm-failover'], 'timeout');
      assert.ok(took >= 1900 && took < 6000, `${took} ms`);
      await gone;
      world.queue = standIn;
    });

    test('a wrong key lets everybody in and is logged every time', async () => {
      const other = await World.start({ form, vars: { QM_ROOM: room, QM_PUBLIC_API_KEY: 'wrong' }, queue: passOn(server) });
      try {
        for (let i = 0; i < 2; i += 1) {
          const open = await other.visit(`${SHOP}/checkout`, { headers: BROWSER });
          assert.equal(open.status, 200);
          assert.equal(open.headers['x-qm-failover'], 'http-401');
        }
        await until(() => other.logged.split('refuses our key').length > 2, 'two lines in the log');
        assert.ok(!other.logged.includes('wrong'), 'the key itself is not logged');
      } finally {
        await other.stop();
      }
    });

    test('a busy server queues, is no outage and is logged once', async () => {
      const busy = await startServer({ CHECK_LIMIT_PER_MIN: '1' });
      const other = await World.start({ form, vars: { QM_ROOM: room, QM_PUBLIC_API_KEY: PUBLIC_API_KEY }, queue: passOn(busy) });
      try {
        await busy.room({ id: room, state: 'bypass' });
        const answers = [];
        for (let i = 0; i < 4; i += 1) answers.push(await other.visit(`${SHOP}/checkout`, { headers: BROWSER }));
        assert.deepEqual(answers.map((answer) => answer.status), [200, 302, 302, 302]);
        assert.ok(answers.every((answer) => answer.headers['x-qm-failover'] === undefined));
        await until(() => other.logged.includes('is busy'), 'a line in the log');
        assert.equal(other.logged.split('is busy').length, 2);
      } finally {
        await other.stop();
        await busy.stop();
      }
    });

    test('the server is gone: everybody goes in, and the answer says so', async () => {
      assert.equal((await visit('/checkout')).status, 302);
      await server.stop();
      const open = await visit('/checkout');
      assert.equal(open.status, 200);
      assert.equal(open.headers['x-qm-failover'], 'unreachable');
    });
  });
