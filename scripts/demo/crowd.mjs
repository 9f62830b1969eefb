// Sends a bounded crowd of visitors to a server on this machine, and tells how it went.
//
//   node scripts/demo/crowd.mjs --server http://127.0.0.1:8080 --shop http://localhost:8090 --room demo --count 200
//
// Every visitor has its own cookies and its own X-Forwarded-For (the server must run with TRUST_PROXY=1):
// joins, asks for its place with a growing pause, and goes through the door when its turn has come.

import { setMaxListeners } from 'node:events';
import http from 'node:http';
import process from 'node:process';
import { parseArgs } from 'node:util';

const COUNT_MAX = 20_000;
const ARRIVALS_MS = 5_000;
const SOCKETS_MAX = 200;
const PAUSE_MS = { least: 1_000, most: 10_000 };

const { values } = parseArgs({
  options: {
    server: { type: 'string' },
    shop: { type: 'string', default: 'http://localhost:8090' },
    room: { type: 'string', default: 'demo' },
    count: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '600' },
  },
});
const count = Number(values.count);
const seconds = Number(values.seconds);
const server = URL.canParse(values.server ?? '') ? new URL(values.server) : undefined;
const wrong =
  (!server && '--server wants an origin') ||
  (!['127.0.0.1', 'localhost', '[::1]'].includes(server.hostname) && '--server wants an address of this machine') ||
  (!(Number.isInteger(count) && count >= 1 && count <= COUNT_MAX) && `--count wants 1..${COUNT_MAX}`) ||
  (!(seconds > 0 && seconds <= 3_600) && '--seconds wants 1..3600');
if (wrong) {
  console.error(`crowd: ${wrong}`);
  process.exit(2);
}

const agent = new http.Agent({ keepAlive: true, maxSockets: SOCKETS_MAX });
const end = Date.now() + seconds * 1_000;
const stopped = new AbortController();
setMaxListeners(0, stopped.signal); // everybody in the crowd waits on it
const tally = { joined: 0, passed: 0, admitted: 0, failed: 0, busy: 0, longestMs: 0 };

/** Waits, or ends early when the crowd is called off. */
const pause = (ms) =>
  new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      stopped.signal.removeEventListener('abort', done);
      resolve();
    }
    stopped.signal.addEventListener('abort', done);
  });
const over = () => stopped.signal.aborted || Date.now() > end;

function ask(visitor, method, target, { body, headers = {}, cookies = true } = {}) {
  const text = body && JSON.stringify(body);
  const cookie = [...visitor.jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const all = {
    'User-Agent': visitor.agent,
    'Accept-Language': 'en',
    Accept: 'application/json, */*',
    'Sec-Fetch-Site': 'same-origin',
    'Sec-Fetch-Mode': 'cors',
    'Sec-Fetch-Dest': 'empty',
    'X-Forwarded-For': visitor.address,
    ...(text ? { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) } : {}),
    ...(cookies && cookie ? { Cookie: cookie } : {}),
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const request = http.request({ host: server.hostname.replace(/[[\]]/g, ''), port: server.port, method, path: target, headers: all, agent });
    request.setTimeout(15_000, () => request.destroy(new Error('no answer')));
    request.on('error', reject).on('response', (response) => {
      let answer = '';
      response.setEncoding('utf8').on('data', (d) => (answer += d)).on('error', reject);
      response.on('end', () => {
        for (const line of response.headers['set-cookie'] ?? []) {
          const [pair] = line.split(';');
          visitor.jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
        }
        try {
          resolve({ status: response.statusCode, json: JSON.parse(answer) });
        } catch {
          resolve({ status: response.statusCode, json: {} });
        }
      });
    });
    request.end(text);
  });
}

/** Repeats while the server is busy or silent; undefined when the crowd is over. */
async function patiently(visitor, ...request) {
  for (let wait = PAUSE_MS.least; !over(); wait = Math.min(PAUSE_MS.most, wait * 2)) {
    const answer = await ask(visitor, ...request).catch(() => ({ status: 503, json: {} }));
    if (answer.status !== 429 && answer.status < 500) return answer;
    tally.busy += 1;
    await pause(wait);
  }
  return undefined;
}

async function throughTheDoor(visitor, token) {
  const query = new URLSearchParams({ roomId: values.room, token, url: `${values.shop}/checkout` });
  const headers = { Origin: new URL(values.shop).origin, 'Sec-Fetch-Site': 'cross-site' };
  const answer = await patiently(visitor, 'GET', `/api/v1/check?${query}`, { headers, cookies: false });
  if (answer?.json.action === 'pass' && answer.json.session) tally.admitted += 1;
}

async function visit(i) {
  const visitor = {
    jar: new Map(),
    address: `198.${18 + ((i >> 16) & 1)}.${(i >> 8) & 255}.${i & 255}`,
    agent: `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.${i}.0 Safari/537.36`,
  };
  await pause((i / count) * ARRIVALS_MS);
  const joined = await patiently(visitor, 'POST', '/api/v1/join', { body: { roomId: values.room } });
  if (joined?.status !== 200) {
    if (joined) tally.failed += 1;
    return;
  }
  tally.joined += 1;
  const began = Date.now();
  let frame = joined.json;
  let token = frame.token;
  while (!frame.passed && !frame.expired && !over()) {
    // People at the back ask less often; nobody is silent long enough to count as gone.
    await pause(Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, (frame.etaSec ?? 10) * 250)));
    const answer = await patiently(visitor, 'GET', `/api/v1/status?token=${encodeURIComponent(token)}`);
    frame = answer?.json ?? frame;
    token = frame.token ?? token;
  }
  if (!frame.passed) return;
  tally.passed += 1;
  tally.longestMs = Math.max(tally.longestMs, Date.now() - began);
  await throughTheDoor(visitor, token);
}

const line = () =>
  `crowd: ${tally.joined} of ${count} joined, ${tally.passed} passed, ${tally.admitted} admitted` +
  (tally.failed ? `, ${tally.failed} refused` : '') +
  (tally.busy ? `, ${tally.busy} times told to wait` : '');
let shown = '';
const progress = setInterval(() => {
  const now = line();
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${now}`);
  else if (now !== shown) console.log(now);
  shown = now;
}, process.stdout.isTTY ? 500 : 5_000);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());

await Promise.all(Array.from({ length: count }, (_, i) => visit(i + 1)));
clearInterval(progress);
agent.destroy();
if (process.stdout.isTTY) process.stdout.write('\r\x1b[K');
console.log(`${line()}; longest wait ${(tally.longestMs / 1_000).toFixed(1)} s${Date.now() > end ? '; the time was up' : ''}`);
process.exit(tally.joined ? 0 : 1);
