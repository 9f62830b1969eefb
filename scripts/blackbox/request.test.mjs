// Requests that are almost right: methods, spellings of paths, hosts, bodies and broken connections.
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { after, before, test } from 'node:test';
import { SHOP, startServer, until } from './harness.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const statusOf = (text) => Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0);
const codeOf = (text) => JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)).code;

test('C034: a HEAD never uses a pass up, other methods and spellings reach nothing', async () => {
  const room = await server.room();
  const visitor = server.visitor();
  await visitor.join(room);
  await server.flush(room);
  const target = `check?roomId=${room}&token=${visitor.token}&url=${SHOP}/`;
  for (let i = 0; i < 3; i += 1) {
    const head = await visitor.request('HEAD', `/api/v1/${target}`);
    assert.deepEqual([head.status, head.text], [200, '']);
  }
  assert.equal((await server.listed(room)).sessions, 0);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND']) {
    for (const base of ['/api/v1/', '/api/']) {
      const { status, json, headers } = await server.request(method, base + target);
      assert.deepEqual([status, json?.code], [405, 'method_not_allowed'], method);
      assert.match(headers.allow, /\bGET\b/);
    }
  }
  for (const path of [`/api/v1/check/?${target}`, `//api/v1/${target}`, `/api//v1/${target}`, `/api/v1/%63heck?x`, `/API/v1/${target}`, `/api/v1/v1/${target}`, `/api/v2/${target}`, `/api/v1/../v1/${target}`, '/api', '/api/', '/api/v1']) {
    const { status, json } = await server.get(path);
    assert.deepEqual([status, json?.code], [404, 'not_found'], path);
  }
  assert.equal((await visitor.check(room)).json.reason, 'admitted', 'the pass is still there');
});

test('C072: a request names one host, and the target of an absolute form decides', async () => {
  const ask = (target, ...hosts) =>
    server.raw(`GET ${target} HTTP/1.1\r\n${hosts.map((host) => `Host: ${host}\r\n`).join('')}Connection: close\r\n\r\n`);
  for (const [target, ...hosts] of [['/healthz', 'a'], ['http://a/healthz', 'a'], ['http://A:80/healthz', 'a'], ['http://a/healthz', 'a:80']]) {
    assert.equal(statusOf(await ask(target, ...hosts)), 200, `${target} ${hosts}`);
  }
  for (const [target, ...hosts] of [['/healthz', 'a', 'b'], ['/healthz', 'a', 'a'], ['http://a/healthz', 'b'], ['http://a:8080/healthz', 'a']]) {
    const text = await ask(target, ...hosts);
    assert.deepEqual([statusOf(text), codeOf(text)], [400, 'bad_request'], `${target} ${hosts}`);
  }
});

test('C079: a body that is almost right takes no place and says what is wrong', async () => {
  const room = await server.room();
  const good = JSON.stringify({ roomId: room });
  for (const [body, status, code, type] of [
    [`{"roomId":["${room}"]}`, 400, 'invalid_room_id'],
    ['{"roomId":""}', 400, 'invalid_room_id'],
    ['{"roomId":null}', 400, 'invalid_room_id'],
    ['{"roomId":{"a":1}}', 400, 'invalid_room_id'],
    ['{}', 400, 'invalid_room_id'],
    [`{"RoomId":"${room}"}`, 400, 'invalid_room_id'],
    [`{"roomId":"${room} "}`, 400, 'invalid_room_id'],
    ['[]', 400, 'invalid_body'],
    [`[${good}]`, 400, 'invalid_body'],
    ['null', 400, 'invalid_body'],
    ['"x"', 400, 'invalid_body'],
    ['7', 400, 'invalid_body'],
    [`{"roomId":"a","roomId":"${room}"}`, 400, 'invalid_body'],
    [`{"roomId":"${room}","x":{"a":1,"a":1}}`, 400, 'invalid_body'],
    ['', 400, 'invalid_json'],
    [`\ufeff${good}`, 400, 'invalid_json'],
    [`{"roomId":"${room}",}`, 400, 'invalid_json'],
    [`{'roomId':'${room}'}`, 400, 'invalid_json'],
    [`${good}x`, 400, 'invalid_json'],
    [`${good}${good}`, 400, 'invalid_json'],
    [`{"roomId":"${room}"`, 400, 'invalid_json'],
    [`roomId=${room}`, 400, 'invalid_json', 'application/x-www-form-urlencoded'],
    [`--x\r\n\r\n${room}\r\n--x--`, 400, 'invalid_json', 'multipart/form-data; boundary=x'],
    [gzipSync(good), 400, 'invalid_json'],
    [Buffer.from(good, 'utf16le'), 400, 'invalid_json'],
    [Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), 400, 'invalid_json'],
    ['['.repeat(5000), 400, 'invalid_json'],
    [`{"roomId":"${room}","token":5}`, 400, 'invalid_token_field'],
    [`{"roomId":"${room}","token":["a"]}`, 400, 'invalid_token_field'],
    [`{"roomId":"${room}","token":false}`, 400, 'invalid_token_field'],
    [`{"roomId":"${room}","pad":"${'x'.repeat(2_000_000)}"}`, 413, 'payload_too_large'],
  ]) {
    const answer = await server.post('/api/v1/join', body, { headers: type ? { 'Content-Type': type } : {} });
    const shown = String(body).slice(0, 60);
    assert.deepEqual([answer.status, answer.json?.code], [status, code], shown);
    assert.equal(typeof answer.json.error, 'string', shown);
    assert.equal(answer.headers['set-cookie'], undefined, shown);
  }
  const item = await server.listed(room);
  assert.deepEqual([item.waiting, item.nextTicket], [0, 1]);
  const absent = await server.post('/api/v1/join', `{"roomId":"${room}","token":null}`);
  assert.equal(absent.json.position, 1, 'null is no token');
  const plain = await server.post('/api/v1/join', good, { headers: { 'Content-Type': 'text/plain' } });
  assert.equal(plain.json.position, 2, 'what the body is counts, not what it is called');
});

test('C079: a body cut half-way is aborted, and takes no place', async () => {
  const room = await server.room();
  const good = JSON.stringify({ roomId: room });
  const head = 'POST /api/v1/join HTTP/1.1\r\nHost: q\r\nContent-Type: application/json\r\n';
  for (const text of [
    `${head}Content-Length: ${good.length + 20}\r\n\r\n${good}`,
    `${head}Transfer-Encoding: chunked\r\n\r\n${good.length.toString(16)}\r\n${good}\r\n`,
    `${head}Transfer-Encoding: chunked\r\n\r\n${(good.length + 9).toString(16)}\r\n${good}`,
  ]) {
    const answer = await server.raw(text, { half: true });
    if (answer) assert.deepEqual([statusOf(answer), codeOf(answer)], [400, 'request_aborted'], text.slice(80, 160));
  }
  await until(async () => (await server.get('/healthz')).status === 200, 'the server going on');
  assert.equal((await server.listed(room)).nextTicket, 1);
});

test('ambiguous lengths and heads beyond bounds are refused, and close the connection', async () => {
  const head = 'POST /api/v1/join HTTP/1.1\r\nHost: q\r\n';
  for (const [text, status] of [
    [`${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    [`${head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400],
    [`${head}Content-Length: -1\r\n\r\n{}`, 400],
    [`${head}Content-Length: +2\r\n\r\n{}`, 400],
    [`${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`, 400],
    [`${head}Transfer-Encoding: gzip\r\n\r\n{}`, 400],
    [`GET /healthz HTTP/1.1\r\nHost: q\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
    ['GET\r\n\r\n', 400],
    ['\0\0\0\0\r\n\r\n', 400],
    ['GET / HTTP/9.9\r\nHost: q\r\n\r\n', 400],
    ['GET /healthz HTTP/1.1\r\nHost: q\r\nBad Header: x\r\n\r\n', 400],
    ['GET /\u0000 HTTP/1.1\r\nHost: q\r\n\r\n', 400],
  ]) {
    const answer = await server.raw(text);
    assert.equal(statusOf(answer), status, JSON.stringify(text.slice(0, 90)));
    const code = status === 431 ? 'headers_too_large' : 'bad_request';
    assert.equal(codeOf(answer), code, 'every error says what it is');
    assert.match(answer, /x-content-type-options: nosniff/);
    assert.equal(answer.match(/HTTP\/1\.[01] \d{3}/g).length, 1, 'nothing more is answered');
  }
});
