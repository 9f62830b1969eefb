// What a check adds: the Worker against one that passes everything through, in turns, in one run.
// `node bench.mjs [ROUNDS]`. The queue server is a stub on loopback, so that its time is small and
// the same; what is left is the Worker's own work and one question.

import { World, BUILT, SHOP } from './test/world.mjs';
import { Miniflare } from 'miniflare';

const ROUNDS = Number(process.argv[2] ?? 2000);
const token = 'eyJyIjoiY2hlY2tvdXQiLCJuIjo0MiwiZyI6MSwiaWF0IjoxNzAwMDAwMDAwMDAwfQ.Xxm6lvwgvVEYcODZ-VaePsymHFrWl_V9IzkWz3NVYTk';
const queue = (_, response) => response.end('{"action":"pass","reason":"session","session":true}');
const site = (_, response) => response.end('site');
const rank = (times, share) => times[Math.min(times.length - 1, Math.floor(times.length * share))].toFixed(2);

const PLAIN = 'export default { fetch: (request) => fetch(request) };';
const ONE_MORE = `export default { async fetch(request) { await (await fetch('https://queue.example.com/api/v1/check')).text(); return fetch(request); } };`;

async function plain(contents) {
  const world = await World.start({ form: BUILT[0], queue, site });
  const address = `127.0.0.1:${world.proxy.address().port}`;
  await world.miniflare.dispose();
  world.miniflare = new Miniflare({
    modules: [{ type: 'ESModule', path: 'p.js', contents }],
    compatibilityDate: '2025-01-01',
    outboundService: { external: { address, http: { style: 'proxy' } } },
  });
  world.at = await world.miniflare.ready;
  return world;
}

const worlds = { 'pass-through': await plain(PLAIN), 'pass-through + one fetch': await plain(ONE_MORE) };
for (const form of BUILT) worlds[`door, ${form}`] = await World.start({ form, queue, site });
const times = Object.fromEntries(Object.keys(worlds).map((name) => [name, []]));
const headers = { Cookie: `qm_checkout=${token}`, 'Sec-Fetch-Dest': 'document' };
for (let i = 0; i < ROUNDS + 100; i += 1)
  for (const [name, world] of Object.entries(worlds)) {
    const began = performance.now();
    await world.visit(`${SHOP}/checkout`, { headers });
    // The first ones warm the isolates up.
    if (i >= 100) times[name].push(performance.now() - began);
  }
const base = times['pass-through'].sort((a, b) => a - b);
for (const [name, all] of Object.entries(times)) {
  all.sort((a, b) => a - b);
  const more = (share) => (rank(all, share) - rank(base, share)).toFixed(2);
  console.log(`${name.padEnd(26)} p50 ${rank(all, 0.5)} ms  p99 ${rank(all, 0.99)} ms  added p50 ${more(0.5)}  p99 ${more(0.99)}`);
}
for (const world of Object.values(worlds)) await world.stop();
