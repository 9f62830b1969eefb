// The package as npm and people meet it: installed from the server, locked, upgraded, run by npx.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import test, { after, before } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';

import { PUBLIC_API_KEY, SHOP, startServer } from '../../../scripts/blackbox/harness.mjs';
import { install, npm, project, registryEntry, run, site } from './installed.mjs';

let server;
let installed;
let room;
before(async () => {
  server = await startServer();
  installed = await install(server);
  room = await server.room();
});
after(() => server?.stop());

const cli = (words, { env, cwd = installed.folder } = {}) =>
  run(process.execPath, [path.join(installed.folder, 'node_modules/@queue-manager/node/bin/queue-manager.js'), ...words], { env, cwd });
const verify = (...words) => cli(['verify', '--server', server.url, ...words]);

test('it has no dependencies, and both module forms give the same', async () => {
  const fields = installed.inside('package.json');
  assert.deepEqual([fields.name, fields.dependencies, fields.private], ['@queue-manager/node', undefined, true]);
  assert.equal(fields.version, installed.entry.version);
  const listed = JSON.parse((await npm(['ls', '--all', '--json'], { cwd: installed.folder })).out);
  assert.deepEqual(Object.keys(listed.dependencies), ['@queue-manager/node']);
  const script = `import all, { middleware, createClient, version } from '@queue-manager/node';
    import { createRequire } from 'node:module';
    const common = createRequire(import.meta.url)('@queue-manager/node');
    console.log(common.middleware === middleware, all.createClient === createClient, version);`;
  writeFileSync(path.join(installed.folder, 'both.mjs'), script);
  const { out } = await run(process.execPath, ['both.mjs'], { cwd: installed.folder });
  assert.equal(out.trim(), `true true ${installed.entry.version}`);
});

test('the versioned address locks; latest does not survive a release', async (t) => {
  let newer;
  const asIs = await fetch(`${server.url}/connectors/node/latest.tgz`).then(async (res) => Buffer.from(await res.arrayBuffer()));
  const { version } = installed.entry;
  const next = version.replace(/\d+$/, (patch) => String((Number(patch) + 1) % 10));
  // The same length, so that only the member's content differs.
  const tar = gunzipSync(asIs).toString('latin1').replace(`"version": "${version}"`, `"version": "${next}"`);
  const upgraded = gzipSync(Buffer.from(tar, 'latin1'));
  const front = await site(t, (req, res) => {
    if (newer && (req.url === '/connectors/node/latest.tgz' || req.url.endsWith(`-${next}.tgz`))) return res.end(upgraded);
    const proxied = http.request(
      { port: server.port, path: req.url, method: req.method, headers: { host: req.headers.host } },
      (answer) => {
        const parts = [];
        answer
          .on('data', (part) => parts.push(part))
          .on('end', () => {
            const body = Buffer.concat(parts);
            const isRegistry = newer && req.url === '/api/v1/connectors';
            res.statusCode = answer.statusCode;
            res.end(
              isRegistry
                ? body
                    .toString()
                    .replaceAll(`node-${version}.tgz`, `node-${next}.tgz`)
                    .replaceAll(`"version": "${version}"`, `"version": "${next}"`)
                : body,
            );
          });
      },
    );
    return proxied.end();
  });

  const pinned = project();
  const floating = project();
  await npm(['install', `${front.url}/connectors/node/queue-manager-node-${version}.tgz`], {
    cwd: pinned,
    env: { npm_config_cache: path.join(pinned, '.npm') },
  });
  await npm(['install', `${front.url}/connectors/node/latest.tgz`], {
    cwd: floating,
    env: { npm_config_cache: path.join(floating, '.npm') },
  });
  const lock = JSON.parse(readFileSync(path.join(pinned, 'package-lock.json'), 'utf8'));
  const digest = createHash('sha512').update(asIs).digest('base64');
  assert.equal(lock.packages['node_modules/@queue-manager/node'].integrity, `sha512-${digest}`);

  const update = (cwd) => cli(['update'], { cwd });
  assert.equal((await update(pinned)).code, 0, 'the server is known from package.json');
  newer = true;
  const behind = await update(pinned);
  assert.equal(behind.code, 1);
  assert.match(behind.out, new RegExp(`npm install ${front.url}/connectors/node/queue-manager-node-${next.replaceAll('.', '\\.')}\\.tgz`));

  const clean = async (cwd) => {
    for (const name of ['node_modules', '.npm']) rmSync(path.join(cwd, name), { recursive: true, force: true });
    return run('npm', ['ci'], { cwd, env: { npm_config_cache: path.join(cwd, '.npm') } });
  };
  const kept = await clean(pinned);
  assert.equal(kept.code, 0, kept.err);
  assert.equal((await update(pinned)).code, 1, 'still the locked version');
  const lost = await clean(floating);
  assert.notEqual(lost.code, 0);
  assert.match(lost.err, /EINTEGRITY/);
});

test('npx runs it from the address, installing nothing', async () => {
  const folder = project();
  const env = { npm_config_cache: path.join(folder, '.npm') };
  const { verifyCommand } = await registryEntry(server);
  const words = verifyCommand.replace('<roomId>', room).replace('https://<your-site>', SHOP).split(' ').slice(1);
  const done = await run('npx', words, { cwd: folder, env });
  assert.equal(done.code, 0, done.out + done.err);
  assert.match(done.out, /room_exists/);
  const typo = await run(
    'npx',
    words.map((word) => (word === room ? 'no-such-room' : word)),
    { cwd: folder, env },
  );
  assert.equal(typo.code, 1);
  assert.match(typo.out, /FAIL {2}room_exists/);
});

test('npx --no in an empty folder runs nothing', async (t) => {
  const asked = [];
  const registry = await site(t, (req, res) => {
    asked.push(req.url);
    res.writeHead(404).end('{}');
  });
  const folder = project();
  const done = await run('npx', ['--no', 'queue-manager', 'verify'], {
    cwd: folder,
    env: { npm_config_registry: registry.url, npm_config_cache: path.join(folder, '.npm') },
  });
  assert.notEqual(done.code, 0);
  assert.equal(
    asked.some((url) => url.endsWith('.tgz')),
    false,
  );
  const inside = { cwd: installed.folder };
  const verified = await run(
    'npx',
    ['--no', 'queue-manager', 'verify', '--strict', '--server', server.url, '--room', room, '--origin', SHOP],
    inside,
  );
  assert.deepEqual([verified.code, /right \(0 failed, 0 warnings\)/.test(verified.out)], [0, true], verified.err);
  assert.equal((await run('npx', ['--no', 'queue-manager', 'update'], inside)).code, 0);
});

test('verify: what it says and how it ends', async () => {
  const other = await server.room({ targetUrl: null });
  for (const [words, code, text] of [
    [['--room', room, '--origin', SHOP], 0, /the installation is right/],
    [['--room', room, '--url', `${SHOP}/checkout`], 0, /url_scope/],
    [[`--room=${room}`, `--origin=${SHOP}`, '--strict'], 0, /0 failed, 0 warnings/],
    [['--room', room, '--origin', 'https://www.shop.example.com'], 1, /FAIL {2}tag_origin/],
    [['--room', 'no-such-room', '--origin', SHOP], 1, /FAIL {2}room_exists/],
    [['--room', 'no such room', '--origin', SHOP], 1, /refuses the question/],
    [['--room', other, '--origin', SHOP], 1, /FAIL {2}return_policy/],
    [['--room', room, '--origin', SHOP, '--key', PUBLIC_API_KEY], 0, /ok {4}public_key/],
    [['--room', room, '--origin', SHOP, '--key', 'wrong'], 1, /FAIL {2}public_key/],
    [['--room', room, '--origin', SHOP, '--connector-version', '0.0.1'], 0, /warn {2}connector_version/],
    [['--room', room, '--origin', SHOP, '--connector-version', '0.0.1', '--strict'], 1, /warn {2}connector_version/],
    [['--room', room], 2, /--origin is missing/],
    [['--origin', SHOP], 2, /--room is missing/],
    [['--room', room, '--origin', SHOP, '--strcit'], 2, /no option --strcit/],
    [['--room', room, '--room', room, '--origin', SHOP], 2, /twice/],
    [['--room', '--origin', SHOP], 2, /--room needs a value/],
    [['--room', room, '--origin', SHOP, 'more'], 2, /no option more/],
  ]) {
    const done = await verify(...words);
    assert.equal(done.code, code, `${words.join(' ')}: ${done.out}${done.err}`);
    assert.match(done.out + done.err, text, words.join(' '));
  }
  const json = await verify('--room', room, '--origin', SHOP, '--json');
  assert.equal(JSON.parse(json.out).ok, true);
});

test('settings come from the environment and from package.json', async () => {
  const env = { QM_SERVER: server.url, QM_ROOM: room, QM_ORIGIN: SHOP, QM_PUBLIC_API_KEY: PUBLIC_API_KEY };
  assert.match((await cli(['verify', '--strict'], { env })).out, /ok {4}public_key/);
  const folder = project({ queueManager: { server: server.url, room, origin: SHOP } });
  assert.equal((await cli(['verify'], { cwd: folder })).code, 0);
  assert.equal((await cli(['verify'], { cwd: project() })).code, 2);
});

test('a server that cannot be asked is 3', async (t) => {
  const html = await site(t, (req, res) => res.end('<html>'));
  const moved = await site(t, (req, res) => res.writeHead(301, { location: 'https://queue.example.com/' }).end());
  const busy = await site(t, (req, res) => res.writeHead(429, { 'retry-after': '7' }).end('{"code":"rate_limited"}'));
  for (const [url, text] of [
    ['http://127.0.0.1:9', /cannot reach/],
    [html.url, /not answer as a queue server/],
    [moved.url, /redirects to https:/],
    [busy.url, /7 seconds/],
  ]) {
    for (const words of [['verify', '--room', 'a', '--origin', SHOP], ['update']]) {
      const done = await cli([...words, '--server', url]);
      assert.equal(done.code, 3, `${url} ${words}: ${done.out}${done.err}`);
      assert.match(done.err, text);
    }
  }
});

test('help, version and unknown commands', async () => {
  for (const words of [['--help'], ['help'], ['verify', '--help']]) {
    const done = await cli(words);
    assert.equal(done.code, 0);
    assert.match(done.out, /Exit codes: 0 all well, 1 .*, 2 wrong usage, 3 server not reachable/);
  }
  assert.equal((await cli(['--version'])).out.trim(), installed.entry.version);
  for (const words of [[], ['instal'], ['update', 'x']]) assert.equal((await cli(words)).code, 2);
});
