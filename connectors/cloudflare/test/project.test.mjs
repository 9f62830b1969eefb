// The wrangler project as customers get it: it deploys (dry), holds the same bytes as the single
// file, and its verification stops a wrong deploy.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { PUBLIC_API_KEY, SHOP, startServer } from '../../../scripts/blackbox/harness.mjs';
import { FILE, PROJECT, ROOT } from './world.mjs';

const MODULES = path.join(ROOT, 'connectors/cloudflare/node_modules');
let folder;
let server;
before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'qm-project-'));
  cpSync(PROJECT, folder, { recursive: true });
  symlinkSync(MODULES, path.join(folder, 'node_modules'));
  server = await startServer({});
  await server.room({ id: 'shop', targetUrl: `${SHOP}/`, tagOrigins: [SHOP], returnOrigins: [SHOP] });
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function run(command, args, env = {}) {
  const child = spawn(command, args, { cwd: folder, env: { PATH: process.env.PATH, HOME: folder, CI: '1', WRANGLER_SEND_METRICS: 'false', ...env } });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part) => {
      said += part;
    });
  return new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve({ code, said })));
}
const verify = (vars) => run(process.execPath, ['verify.mjs'], { QM_SERVER: server.url, QM_ROOM: 'shop', QM_PUBLIC_API_KEY: PUBLIC_API_KEY, QM_SITE: SHOP, ...vars });

test('the project holds the bytes of the single file', () => {
  assert.deepEqual(readFileSync(path.join(PROJECT, 'src/worker.js')), readFileSync(FILE));
});

test('both forms say the same version', () => {
  const { version } = JSON.parse(readFileSync(path.join(PROJECT, 'package.json'), 'utf8'));
  const rust = readFileSync(path.join(ROOT, 'host-wasm/src/worker/mod.rs'), 'utf8');
  assert.ok(rust.includes(`const VERSION: &str = "${version}";`));
  assert.ok(readFileSync(FILE, 'utf8').includes(`const VERSION = '${version}';`));
});

test('wrangler takes the project and the single file', async () => {
  const wrangler = path.join(MODULES, '.bin/wrangler');
  for (const args of [[], ['src/worker.js', '--name', 'qm-edge', '--compatibility-date', '2025-01-01', '--var', 'QM_SERVER:https://queue.example.com', '--var', 'QM_ROOM:shop']]) {
    const { code, said } = await run(wrangler, ['deploy', ...args, '--dry-run', '--outdir', 'out']);
    assert.equal(code, 0, said);
    assert.match(said, /QM_SERVER/);
  }
});

test('verification passes what is right and stops what is wrong', async () => {
  for (const [vars, code, text] of [
    [{}, 0, /installation is right/],
    [{ QM_SITE: '' }, 0, /no site was checked/],
    [{ QM_ROOM: 'shpo' }, 1, /room_exists/],
    [{ QM_ROOM: '' }, 1, /QM_ROOM/],
    [{ QM_PUBLIC_API_KEY: '' }, 1, /QM_PUBLIC_API_KEY is not set/],
    [{ QM_PUBLIC_API_KEY: 'wrong' }, 1, /public_key/],
    [{ QM_SERVER: 'https//queue.example.com' }, 1, /QM_SERVER/],
    [{ QM_SERVER: 'http://127.0.0.1:1' }, 1, /no answer/],
    [{ QM_SITE: 'https://evil.example' }, 1, /tag_origin/],
  ]) {
    const got = await verify(vars);
    assert.equal(got.code, code, `${JSON.stringify(vars)}: ${got.said}`);
    assert.match(got.said, text);
  }
});
