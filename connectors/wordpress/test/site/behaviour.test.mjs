// The situations that all connectors share, played to the plugin in a real WordPress.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { Site, fakeQueue } from './wordpress.mjs';

const table = JSON.parse(fs.readFileSync(new URL('../../../behaviour.json', import.meta.url), 'utf8'));
const rows = table.rows.filter((row) => !row.hosts || row.hosts.includes('php'));

/** Fills the placeholders of a row. */
function fill(value) {
  if (Array.isArray(value)) return value.map(fill);
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fill(inner)]));
  if (typeof value !== 'string') return value;
  return value.replace(/\$\{(?:([^}]+)\*(\d+)|(\w+))\}/gu, (_, text, count, name) => (name ? table.tokens[name] : text.repeat(Number(count))));
}

let queue;
let site;
before(async () => {
  [queue, site] = await Promise.all([fakeQueue(), Site.start()]);
  const { room, publicApiKey } = table.settings;
  const page = await site.save({ server: queue.url, room, key: publicApiKey, is_wanted: '1' });
  assert.equal(page.state, 'success');
});
after(async () => {
  await site?.stop();
  await queue?.stop();
});

/** Texts of the table name another server than the one that plays it. */
const here = (text, server) => (typeof text === 'string' ? text.replaceAll(server, queue.url) : text);

test('the shared table', async (t) => {
  for (const raw of rows) {
    await t.test(raw.name, async () => {
      const row = fill(raw);
      const settings = { ...table.settings, ...row.settings };
      const request = { ...table.request, ...row.request };
      const steps = [...(row.server ?? [])];
      const faults = [];
      queue.checks = [];
      queue.answer = (asked, response, query) => {
        const step = steps[queue.checks.length - 1];
        if (!step) {
          faults.push('one check too many');
          return response.destroy();
        }
        if (query.get('roomId') !== settings.room) faults.push('another room');
        if (asked.headers.authorization !== `Bearer ${settings.publicApiKey}`) faults.push('another key');
        for (const [name, value] of Object.entries(step.sent ?? {})) {
          const sent = name === 'key' ? (asked.headers['x-qm-session'] ?? null) : query.get(name);
          if (sent !== value) faults.push([name, sent, value]);
        }
        const { failure, status, headers, body = '' } = step.answer;
        if (failure === 'timeout') return undefined;
        if (failure) return asked.socket.destroy();
        response.writeHead(status, headers);
        return response.end(typeof body === 'string' ? here(body, settings.server) : here(JSON.stringify(body), settings.server));
      };
      const headers = Object.entries(request.headers ?? {}).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
      const target = /^https?:\/\/[^/?#]*(.*)$/s.exec(request.url)[1] || '/';
      const answer = await site.request(request.method, target, { headers, address: request.address ?? undefined });
      assert.deepEqual(faults, []);
      assert.equal(queue.checks.length, steps.length, 'checks');

      const { outcome, failover, location, returnTo, cookie } = row.expect;
      assert.equal(answer.headers['x-qm-failover'], failover);
      const to = answer.headers.location ?? '';
      if (outcome === 'forward') {
        // A page that WordPress does not have is WordPress's answer all the same.
        assert.ok(!to.startsWith(queue.url) && answer.status !== 503, `${answer.status} ${to}`);
        assert.equal(answer.headers['x-qm-failover'] ?? '', failover ?? '');
      } else if (outcome === 'refuse') {
        assert.deepEqual([answer.status, answer.headers['cache-control']], [503, 'no-store']);
      } else {
        assert.deepEqual([answer.status, answer.headers['cache-control']], [302, 'no-store']);
        const [page, back] = to.split(/[?&]qm_return=/);
        if (outcome === 'strip') assert.equal(to, location);
        else assert.equal(page, here(location ?? `${settings.server}/w/${settings.room}`, settings.server));
        if (outcome === 'waiting' && returnTo !== undefined) assert.equal(back === undefined ? null : decodeURIComponent(back), returnTo);
      }
      const set = answer.cookies.filter(({ name }) => name === `qm_${settings.room}`);
      if (cookie === undefined) return assert.deepEqual(set, []);
      assert.equal(set.length, 1);
      if (cookie === 'cleared') return assert.match(set[0].line, /^[^=]+=(deleted)?; .*Max-Age=0/);
      assert.equal(set[0].value, cookie.set);
      for (const part of ['Max-Age=86400', 'Path=/', 'SameSite=Lax', 'HttpOnly', ...(cookie.secure === false ? [] : ['Secure'])]) assert.ok(set[0].line.toLowerCase().includes(`; ${part.toLowerCase()}`), `${part}: ${set[0].line}`);
      return undefined;
    });
  }
});

test('the plugin itself raises no notice', () => {
  assert.deepEqual(site.log.split('\n').filter((line) => /PHP .*plugins\/queue-manager/.test(line)), []);
});
