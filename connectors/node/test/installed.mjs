// The package as a customer has it: served by the built server, installed by npm into a folder of its
// own. Every test runs that, never the sources. The Express of test/app is installed as locked.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const APP = path.join(path.dirname(fileURLToPath(import.meta.url)), 'app');
const folders = new Set();
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Runs a command to its end; a code is never an error. */
export function run(command, words, { cwd, env = {} } = {}) {
  const full = { ...process.env, npm_config_audit: 'false', npm_config_fund: 'false', npm_config_update_notifier: 'false', ...env };
  for (const name of ['NODE_TEST_CONTEXT', 'QM_SERVER', 'QM_ROOM', 'QM_ORIGIN', 'QM_PUBLIC_API_KEY']) if (!(name in env)) delete full[name];
  return new Promise((resolve) => {
    execFile(command, words, { cwd, env: full, timeout: 100_000 }, (error, out, err) => {
      resolve({ code: error ? (error.code ?? -1) : 0, out, err });
    });
  });
}

/** A new project folder, with the npm cache it shares with nobody. */
export function project(fields = {}) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'qm-node-'));
  folders.add(folder);
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'site', version: '1.0.0', private: true, ...fields }));
  return folder;
}

export async function npm(words, options) {
  const done = await run('npm', words, options);
  if (done.code !== 0) throw new Error(`npm ${words.join(' ')}: ${done.code}\n${done.out}${done.err}`);
  return done;
}

/** The served package in a project: {folder, load(name), qm}. */
export async function install(server) {
  const folder = project();
  const entry = await registryEntry(server);
  // QM_NODE_TARBALL tries an archive that no server has been built with yet.
  const words = process.env.QM_NODE_TARBALL ? ['install', process.env.QM_NODE_TARBALL] : entry.install.split(' ').slice(1);
  await npm(words, { cwd: folder, env: { npm_config_cache: path.join(folder, '.npm') } });
  const load = createRequire(path.join(folder, 'x.js'));
  const inside = (name) => load(path.join(folder, 'node_modules/@queue-manager/node', name));
  return { folder, load, inside, entry, qm: load('@queue-manager/node') };
}

export async function registryEntry(server) {
  const { json } = await server.get('/api/v1/connectors');
  return json.connectors.find((connector) => connector.id === 'node');
}

/** Express and Connect, installed as locked, once. */
export async function frameworks() {
  if (!existsSync(path.join(APP, 'node_modules/express/package.json'))) await npm(['ci', '--ignore-scripts'], { cwd: APP });
  const load = createRequire(path.join(APP, 'x.js'));
  return { express: load('express'), express4: load('express4'), connect: load('connect') };
}

/** Makes the frameworks visible from a project. */
export function linkFrameworks(folder) {
  mkdirSync(path.join(folder, 'node_modules'), { recursive: true });
  symlinkSync(path.join(APP, 'node_modules/express'), path.join(folder, 'node_modules/express'));
}

/** A site that listens until the test ends: {port, url, requests}. */
export async function site(t, handler) {
  const server = http.createServer(handler);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address();
  return { server, port, url: `http://127.0.0.1:${port}` };
}

/** A stand-in for the queue server: `handler(req, res, url)` answers checks; other paths get 404. */
export async function fakeQueue(t, handler) {
  const checks = [];
  const queue = await site(t, (req, res) => {
    const url = new URL(req.url, 'http://queue');
    if (url.pathname !== '/api/v1/check') {
      res.writeHead(404, { 'content-type': 'application/json' });
      res.end('{"error":"no","code":"not_found"}');
      return;
    }
    const seen = { query: Object.fromEntries(url.searchParams), headers: req.headers };
    checks.push(seen);
    handler(req, res, seen);
  });
  return { ...queue, checks };
}

export function answer(res, status, body, headers = {}) {
  res.writeHead(status, { 'content-type': 'application/json', ...headers });
  res.end(typeof body === 'string' ? body : JSON.stringify(body));
}
