// Event streams in the field: proxies, reconnects, aborted clients, limits, many tabs, restarts.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { startServer, until, withServer } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

async function waiting(own, room, options) {
  const visitor = own.visitor(options);
  await visitor.join(room);
  return visitor;
}
const openStreams = async (own) => Number(/^qm_sse_streams (\d+)/m.exec(await own.metrics())[1]);

test('C101: nothing on the way may hold frames back', async () => {
  const room = await server.room();
  const visitor = await waiting(server, room);
  for (const coding of ['gzip, br', 'identity']) {
    const began = Date.now();
    const stream = await server.listen(`/events?token=${visitor.token}`, { headers: { ...visitor.headers(), 'Accept-Encoding': coding } });
    await stream.next();
    assert.ok(Date.now() - began < 1_000, 'the first frame comes at once');
    const { headers } = stream;
    assert.match(headers['content-type'], /^text\/event-stream\b/);
    assert.match(headers['cache-control'], /no-store/);
    assert.match(headers['cache-control'], /no-transform/);
    assert.deepEqual([headers['x-accel-buffering'], headers['content-encoding'], headers['content-length']], ['no', undefined, undefined]);
    stream.close();
  }
});

test('C101: a heartbeat comes within six seconds', async () => {
  const room = await server.room();
  const visitor = await waiting(server, room);
  const stream = await visitor.listen(`/events?token=${visitor.token}`);
  const [first, second] = [await stream.next(), await stream.next()];
  assert.deepEqual([second.event, second.data.position], ['status', first.data.position]);
  stream.close();
});

test('C103: aborted, refused and HEAD requests hold no stream of the address', async () => {
  await withServer({ SSE_PER_IP: '2' }, async (own) => {
    const room = await own.room();
    const visitor = await waiting(own, room);
    const target = `/events?token=${visitor.token}`;
    const head = `GET ${target} HTTP/1.1\r\nHost: q\r\nX-Forwarded-For: ${visitor.ip}\r\n`;
    for (let i = 0; i < 40; i += 1) {
      // Gone in the middle of the head, before the answer, or at the first octets of it.
      await new Promise((resolve) => {
        const socket = net.connect(own.port, '127.0.0.1', () => {
          socket.write(i % 3 === 0 ? head.slice(0, 40) : `${head}\r\n`, () => i % 3 !== 2 && socket.destroy());
        });
        socket.on('data', () => socket.destroy()).on('error', () => {}).on('close', resolve);
      });
    }
    for (let i = 0; i < 5; i += 1) {
      assert.equal((await own.get('/events?token=junk', { ip: visitor.ip })).status, 401);
      assert.equal((await visitor.request('HEAD', target)).status, 200);
    }
    await until(async () => (await openStreams(own)) === 0, 'no open stream');
    const open = [await visitor.listen(target), await visitor.listen(target)];
    for (const stream of open) assert.equal(stream.status, 200);
    const refused = await visitor.request('GET', target);
    assert.deepEqual([refused.status, refused.json.code, refused.headers['retry-after']], [429, 'sse_per_ip_limit', '5']);
    const other = await own.listen(target, { ip: '203.0.113.200' });
    assert.equal(other.status, 200, 'another address is not meant');
    open[0].close();
    await until(async () => (await openStreams(own)) === 2, 'the closed stream given back');
    open.push(await visitor.listen(target));
    assert.equal(open[2].status, 200);
    for (const stream of [...open, other]) stream.close();
    await until(async () => (await openStreams(own)) === 0, 'all given back');
  });
});

test('C103: reserving is one step: a crowd of opens gets exactly the limit', async () => {
  await withServer({ SSE_PER_IP: 'off', SSE_MAX_TOTAL: '7' }, async (own) => {
    const room = await own.room();
    const visitor = await waiting(own, room);
    const streams = await Promise.all(Array.from({ length: 30 }, () => visitor.listen(`/events?token=${visitor.token}`)));
    const refused = streams.filter(({ status }) => status !== 200);
    assert.deepEqual([streams.length - refused.length, refused.length], [7, 23]);
    for (const { status, headers, text } of refused) {
      assert.deepEqual([status, headers['retry-after']], [503, '5'], text);
    }
    assert.equal((await visitor.status()).status, 200, 'polling goes on');
    for (const stream of streams) stream.close();
    await until(async () => (await openStreams(own)) === 0, 'all given back');
  });
});

test('C110: all paths give the same stream, whatever the reconnecting browser sends', async () => {
  const room = await server.room();
  const visitor = await waiting(server, room);
  const frames = [];
  for (const path of ['/events', '/api/events', '/api/v1/events']) {
    for (const headers of [{}, { 'Last-Event-ID': '17', Accept: '*/*' }, { 'Last-Event-ID': '\u00ff;', Accept: '' }]) {
      const stream = await server.listen(`${path}?token=${visitor.token}`, { headers: { ...visitor.headers(), ...headers }, ip: visitor.ip });
      const { event, data } = await stream.next();
      frames.push(JSON.stringify([stream.status, event, data.position, data.state, data.passed]));
      stream.close();
    }
  }
  assert.deepEqual([...new Set(frames)], [JSON.stringify([200, 'status', 1, 'waiting', false])]);
  const byCookie = await visitor.listen(`/events?roomId=${room}`);
  assert.equal((await byCookie.next()).data.position, 1);
  byCookie.close();
});

test('many tabs of one visitor see the same pass, and none of them spends it', async () => {
  const room = await server.room();
  const visitor = await waiting(server, room);
  const tabs = await Promise.all(Array.from({ length: 6 }, () => visitor.listen(`/events?token=${visitor.token}`)));
  for (const tab of tabs) await tab.next();
  await server.flush(room);
  const addresses = [];
  for (const tab of tabs) addresses.push((await tab.next((d) => d.passed, 'the pass')).data.redirectUrl);
  assert.equal(new Set(addresses).size, 1);
  assert.equal((await visitor.check(room)).json.reason, 'admitted');
  for (const tab of tabs) tab.close();
});

test('C109: somebody who slept is told by status what became of the place', async () => {
  const room = await server.room({ passedTtlSec: 1 });
  const visitor = await waiting(server, room);
  await server.flush(room);
  assert.equal((await visitor.status()).json.passed, true, 'within the window');
  const over = await until(async () => {
    const { json } = await visitor.status();
    return json.expired && json;
  }, 'the end of the window');
  assert.deepEqual([over.reason, over.passed], ['pass_expired', false]);
  const page = await visitor.page(`/w/${room}`);
  assert.match(page.text, /"lapsed":"expired"/);
});

test('C104: a stop ends every stream cleanly, and new ones are refused', async () => {
  const own = await startServer();
  const room = await own.room();
  const visitors = await Promise.all(Array.from({ length: 20 }, () => waiting(own, room)));
  const streams = await Promise.all(visitors.map((v) => v.listen(`/events?token=${v.token}`)));
  for (const stream of streams) await stream.next();
  assert.equal(await own.stop(), 0);
  await until(() => streams.every((stream) => stream.ended), 'the end of all streams');
  for (const { text } of streams) assert.ok(text.endsWith('\n\n'), 'no frame is cut');
});

test('a client that reads nothing costs others nothing', async () => {
  const room = await server.room();
  const slow = await waiting(server, room);
  const request = http.get({ port: server.port, host: '127.0.0.1', path: `/events?token=${slow.token}`, agent: false });
  const response = await new Promise((resolve) => request.on('response', resolve));
  response.pause();
  const other = await waiting(server, room);
  const stream = await other.listen(`/events?token=${other.token}`);
  await stream.next((d) => d.position === 2);
  await server.flush(room, 2);
  await stream.next((d) => d.passed, 'the pass');
  stream.close();
  request.destroy();
});
