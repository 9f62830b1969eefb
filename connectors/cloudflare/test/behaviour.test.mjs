// The shared table of door situations, run by the Worker inside workerd.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { BUILT, ROOT, World, until } from './world.mjs';

const table = JSON.parse(readFileSync(path.join(ROOT, 'connectors/behaviour.json'), 'utf8'));

const expandText = (text) =>
  text.replace(/\$\{([^}*]*)(?:\*(\d+))?\}/g, (_, name, times) => (times ? name.repeat(Number(times)) : table.tokens[name]));
function expand(value) {
  if (typeof value === 'string') return expandText(value);
  if (Array.isArray(value)) return value.map(expand);
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, expand(v)]));
  return value;
}

const NAMES = { server: 'QM_SERVER', room: 'QM_ROOM', publicApiKey: 'QM_PUBLIC_API_KEY', gate: 'QM_GATE', visitorKey: 'QM_VISITOR_KEY' };
const varsOf = (settings) => Object.fromEntries(Object.entries(settings).map(([k, v]) => [NAMES[k], v]));

/** Rows with the same settings share a Worker. */
function groups(form) {
  const found = new Map();
  for (const raw of table.rows) {
    if (raw.hosts && !raw.hosts.includes(form)) continue;
    const row = expand(raw);
    const settings = { ...table.settings, ...row.settings };
    const key = JSON.stringify([settings, row.rules]);
    if (!found.has(key)) found.set(key, { settings, rules: row.rules, rows: [] });
    found.get(key).rows.push(row);
  }
  return [...found.values()];
}

/** A queue server that answers as told and keeps what it was asked. */
class Script {
  start(answers) {
    this.answers = [...answers];
    this.asked = [];
  }
  handle(request, response, url) {
    this.asked.push({ url, headers: request.headers, bytes: url.pathname.length + url.search.length });
    const { answer } = this.answers.shift() ?? { answer: { status: 200, body: { action: 'pass', reason: 'one check too many' } } };
    if (answer.failure === 'timeout') return;
    if (answer.failure) return void request.socket.destroy();
    response.writeHead(answer.status, answer.headers);
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
  }
}

async function learn(world, script, rules) {
  const patterns = rules.map((rule) => (rule.startsWith('!') ? { pattern: rule.slice(1), action: 'ignore' } : { pattern: rule, action: 'queue' }));
  world.targeting = (response) => {
    response.writeHead(200, { ETag: '"1"' });
    response.end(JSON.stringify({ patterns }));
  };
  const out = rules.some((rule) => rule.startsWith('https:')) ? 'https://shop.example.com/elsewhere' : 'https://shop.example.com/about';
  await until(async () => {
    script.start([]);
    await world.visit(out);
    return script.asked.length === 0;
  }, 'the rules are known');
}

function compareQuestions(asked, row, settings, address) {
  assert.equal(asked.length, row.server.length, 'number of checks');
  for (const [i, { sent = {} }] of row.server.entries()) {
    const { url, headers, bytes } = asked[i];
    assert.equal(url.pathname, '/api/v1/check');
    assert.ok(bytes <= 4096, `a target of ${bytes} bytes`);
    assert.equal(headers.authorization, `Bearer ${settings.publicApiKey.trim()}`);
    assert.equal(headers.cookie, undefined, 'no cookie of the visitor is passed on');
    const wanted = { roomId: settings.room.trim(), ...sent };
    for (const [name, value] of Object.entries(wanted)) {
      const got = name === 'key' ? (headers['x-qm-session'] ?? null) : url.searchParams.get(name);
      assert.equal(got, value, `${name} of check ${i}`);
    }
    if (sent.ip === undefined && !address.includes(':')) assert.equal(url.searchParams.get('ip'), address);
  }
}

function compareAnswer(answer, reached, { expect }, settings) {
  const server = settings.server.trim().replace(/\/$/, '');
  const cookie = expect.cookie;
  const secure = cookie?.secure === false ? '' : '; Secure';
  const line = (value, age) => `qm_${settings.room.trim()}=${value}; Max-Age=${age}; Path=/; SameSite=Lax; HttpOnly${secure}`;
  const cookies = cookie === undefined ? [] : cookie === 'cleared' ? [line('', 0)] : [line(cookie.set, 86400)];
  assert.deepEqual(answer.cookies, cookies);
  assert.equal(answer.headers['x-qm-failover'], expect.failover);
  if (expect.outcome === 'forward') {
    assert.equal(answer.status, 200);
    assert.equal(reached.length, 1, 'reaches the site');
    if (expect.url) assert.equal(reached[0].href, expect.url);
    assert.equal(reached[0].headers['x-qm-failover'], undefined);
    return;
  }
  assert.equal(reached.length, 0, 'never reaches the site');
  assert.equal(answer.headers['cache-control'], 'no-store');
  if (expect.outcome === 'refuse') return assert.equal(answer.status, 503);
  assert.equal(answer.status, 302);
  const location = new URL(answer.headers.location);
  if (expect.outcome === 'waiting') {
    assert.equal(location.searchParams.get('qm_return'), expect.returnTo);
    location.searchParams.delete('qm_return');
    assert.equal(location.href, expect.location ?? `${server}/w/${settings.room.trim()}`);
  } else assert.equal(answer.headers.location, expect.location);
}

for (const form of BUILT)
  describe(`behaviour table: ${form}`, () => {
    for (const { settings, rules, rows } of groups(form)) {
      const script = new Script();
      let opening;
      const open = async () => {
        const world = await World.start({ form, vars: varsOf(settings), queue: (...all) => script.handle(...all) });
        if (rules) await learn(world, script, rules);
        return world;
      };
      after(async () => (await opening)?.stop());
      for (const row of rows)
        test(row.name, async () => {
          const world = await (opening ??= open());
          const request = { ...table.request, ...row.request };
          const reached = [];
          world.site = (incoming, response, url) => {
            reached.push({ href: url.href, headers: incoming.headers });
            response.writeHead(200, { 'X-QM-Failover': 'forged' });
            response.end('site');
          };
          script.start(row.server);
          const answer = await world.visit(request.url, request);
          compareQuestions(script.asked, row, settings, request.address ?? '');
          compareAnswer(answer, reached, row, settings);
        });
    }
    test('the table is not empty', () => assert.ok(groups(form).flatMap((group) => group.rows).length >= 100));
  });
