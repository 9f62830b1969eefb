// The vectors inside workerd: the compiled core of the single file gives there what it gives natively.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Miniflare } from 'miniflare';
import { FILE, ROOT } from './world.mjs';

const read = (name) => JSON.parse(readFileSync(path.join(ROOT, 'core/vectors', name), 'utf8'));

function* questions() {
  const { secret, previous, now, maxAgeSec, sign, cases } = read('token.json');
  for (const c of sign)
    for (const v2 of [false, true]) yield { op: 2, input: { secret, payload: c.payload, v2 }, expected: { token: c[v2 ? 'v2' : 'legacy'] } };
  for (const c of cases) yield { op: 1, input: { secret, previous, token: c.token, now: c.now ?? now, maxAgeSec }, expected: c.expect };
  for (const { patterns, url, expect } of read('targeting.json').cases) yield { op: 3, input: { patterns, url }, expected: expect };
  for (const { payload, refreshAfterMs, jitterMs } of read('jitter.json').cases) yield { op: 4, input: { payload, refreshAfterMs }, expected: { jitterMs } };
}

test('every vector holds inside workerd', async () => {
  const text = readFileSync(FILE, 'utf8');
  const door = text.replace('export default {', 'const unused = {');
  assert.notEqual(door, text);
  const worker = `${door}\nexport default { async fetch(request) {
    const core = new Core({});
    return Response.json((await request.json()).map(({ op, input }) => {
      try { return core.call(op, input); } catch (error) { return { error: String(error) }; }
    }));
  } };`;
  const miniflare = new Miniflare({ modules: [{ type: 'ESModule', path: 'w.js', contents: worker }], compatibilityDate: '2025-01-01' });
  try {
    const asked = [...questions()];
    assert.ok(asked.length > 400);
    const answer = await miniflare.dispatchFetch('http://x/', { method: 'POST', body: JSON.stringify(asked) });
    const got = await answer.json();
    for (const [i, { op, input, expected }] of asked.entries()) assert.deepEqual(got[i], expected, `op ${op} ${JSON.stringify(input)}`);
  } finally {
    await miniflare.dispose();
  }
});
