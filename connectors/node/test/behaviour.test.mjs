// The table of door situations that every connector obeys, run by the installed package: a real
// request to a real site, with a stand-in for the queue server that answers as the row says.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import test, { after, before } from 'node:test';

import { ROOT, send, startServer } from '../../../scripts/blackbox/harness.mjs';
import { answer, fakeQueue, install, site } from './installed.mjs';

const TABLE = JSON.parse(readFileSync(path.join(ROOT, 'connectors/behaviour.json'), 'utf8'));
const ROWS = TABLE.rows.filter((row) => !row.hosts || row.hosts.includes('node'));
const GATES = ['all', 'navigations', 'documents'];

let server;
let qm;
before(async () => {
  server = await startServer();
  ({ qm } = await install(server));
});
after(() => server?.stop());

/** Fills `${name}` with tokens and `${a*300}` with repetitions, in every text. */
function fill(value) {
  if (typeof value === 'string') {
    return value.replace(/\$\{([^}]+)\}/g, (_, name) => {
      const times = /^(.+)\*(\d+)$/.exec(name);
      return times ? times[1].repeat(Number(times[2])) : TABLE.tokens[name];
    });
  }
  if (Array.isArray(value)) return value.map(fill);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner)]));
}

/** The server's part of a row: checks in order, no more and no fewer. */
function script(steps, expectations, own) {
  let step = 0;
  return (req, res, seen) => {
    const now = steps[step];
    step += 1;
    if (!now) {
      expectations.push(() => assert.fail(`an unexpected check: ${JSON.stringify(seen.query)}`));
      return answer(res, 500, {});
    }
    expectations.push(() => {
      for (const [name, value] of Object.entries(now.sent ?? {})) {
        const found = name === 'key' ? seen.headers['x-qm-session'] : seen.query[name];
        assert.equal(found ?? null, value, `sent ${name}`);
      }
    });
    if (now.answer.failure === 'timeout') return undefined;
    if (now.answer.failure === 'unreachable') return req.socket.destroy();
    const { body = '' } = now.answer;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return answer(res, now.answer.status, text.replaceAll(TABLE.settings.server, own.url), now.answer.headers);
  };
}

async function run(t, row) {
  const settings = { ...TABLE.settings, ...row.settings };
  const request = { ...TABLE.request, ...row.request };
  const steps = row.server ?? [];
  const expectations = [];
  const own = {};
  const queue = await fakeQueue(t, script(steps, expectations, own));
  own.url = queue.url;
  const page = new URL(request.url);
  const options = {
    server: queue.url,
    roomId: settings.room,
    publicApiKey: settings.publicApiKey,
    origin: page.origin,
    gate: settings.gate,
    vouchIp: () => request.address,
    timeoutMs: steps.some((step) => step.answer.failure === 'timeout') ? 200 : 2000,
    onEvent: () => {},
  };
  if (!GATES.includes(settings.gate) || !settings.publicApiKey || settings.server !== TABLE.settings.server) {
    // What the Worker says in its log is thrown at start here.
    const bad = { ...options, server: settings.server };
    assert.throws(() => qm.middleware(bad), TypeError);
    return;
  }
  let reached;
  const gate = qm.middleware(options);
  const shop = await site(t, (req, res) =>
    gate(req, res, () => {
      reached = req.url;
      res.end('site');
    }),
  );
  const target = request.url.slice(page.origin.length) || '/';
  const got = await send(shop.port, request.method, target.split('#')[0], { headers: { Host: page.host, ...request.headers } });
  for (const expectation of expectations) expectation();
  assert.equal(queue.checks.length, steps.length, 'the number of checks');
  for (const seen of queue.checks) {
    assert.equal(seen.query.roomId, settings.room);
    assert.equal(seen.headers.authorization, `Bearer ${settings.publicApiKey}`);
  }
  compare(got, row.expect, { settings, queue, page, reached });
}

function compare(got, expect, { settings, queue, page, reached }) {
  const at = `${got.status} ${got.headers.location ?? ''}`;
  const location = got.headers.location && new URL(got.headers.location, page);
  if (expect.outcome === 'forward') {
    assert.equal(got.status, 200, at);
    assert.notEqual(reached, undefined, 'the site was reached');
    assert.equal(got.headers['x-qm-failover'] ?? null, expect.failover ?? null);
    if (expect.url) assert.equal(new URL(reached, page).href, expect.url);
  } else {
    assert.equal(reached, undefined, `the site was reached: ${at}`);
    assert.match(got.headers['cache-control'], /no-store/);
    assert.equal(got.status, expect.outcome === 'refuse' ? 503 : 302, at);
  }
  if (expect.outcome === 'strip') assert.equal(location.href, expect.location);
  if (expect.outcome === 'waiting') {
    if ('returnTo' in expect) assert.equal(location.searchParams.get('qm_return'), expect.returnTo);
    location.searchParams.delete('qm_return');
    const wanted = (expect.location ?? `${settings.server}/w/${settings.room}`).replace(settings.server, queue.url);
    assert.equal(location.href, wanted);
  }
  compareCookie(got.cookies, expect.cookie, settings);
}

function compareCookie(cookies, expected, settings) {
  if (expected === undefined) return assert.deepEqual(cookies, []);
  const cookie = cookies.find(({ name }) => name === `qm_${settings.room}`);
  assert.ok(cookie, JSON.stringify(cookies));
  if (expected === 'cleared') return assert.deepEqual([cookie.value, cookie['max-age']], ['', '0']);
  const { value, path: at, samesite, httponly, secure } = cookie;
  assert.deepEqual([value, cookie['max-age'], at, samesite, httponly], [expected.set, '86400', '/', 'Lax', true]);
  return assert.equal(Boolean(secure), expected.secure !== false);
}

test('the table has rows for this host', () => assert.ok(ROWS.length > 50));
for (const row of ROWS) test(row.name, (t) => run(t, fill(row)));
