// Started by scripts/chaos with VALKEY_URL, DATABASE_URL and QM_BIN. No packages: psql reads the journal.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);
const VISITORS = Number(process.env.QM_CHAOS_VISITORS ?? 3000);
const WIDTH = 24;
const ADMIN = 'chaos-admin-key-0123456789abcdef';
const stores = path.join(import.meta.dirname, 'valkey-postgres');
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

const environment = {
  PATH: process.env.PATH,
  HOST: '127.0.0.1',
  STORE: 'valkey',
  SIDESTORE: 'pg',
  VALKEY_URL: process.env.VALKEY_URL,
  DATABASE_URL: process.env.DATABASE_URL,
  SECRET: 'chaos-signing-secret-0123456789abcdef',
  ADMIN_KEY: ADMIN,
  TRUST_PROXY: '1',
  JOIN_LIMIT_PER_MIN: 'off',
  CHECK_LIMIT_PER_MIN: 'off',
};

const freePort = () =>
  new Promise((done) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

function ask(port, method, target, { body, headers = {} } = {}) {
  return new Promise((done) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const request = http.request(
      { host: '127.0.0.1', port, method, path: target, agent, timeout: 6000,
        headers: { ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }), ...headers } },
      (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('error', () => done({ status: 0 }));
        answer.on('end', () => {
          let json;
          try { json = JSON.parse(Buffer.concat(parts).toString()); } catch { /* no JSON */ }
          done({ status: answer.statusCode, json });
        });
      },
    );
    request.on('timeout', () => request.destroy());
    request.on('error', () => done({ status: 0 }));
    request.end(text);
  });
}

class Server {
  constructor(port) { this.port = port; this.log = ''; }
  start() {
    this.child = spawn(process.env.QM_BIN, [], { env: { ...environment, PORT: String(this.port) } });
    this.child.stderr.on('data', (part) => { this.log = (this.log + part).slice(-20000); });
  }
  async kill(signal = 'SIGKILL') {
    const ended = new Promise((done) => this.child.once('exit', done));
    this.child.kill(signal);
    await ended;
  }
  async ready(ms = 20000) {
    for (const end = Date.now() + ms; Date.now() < end; await pause(50)) {
      if ((await ask(this.port, 'GET', '/healthz')).status === 200) return;
    }
    throw new Error(`the server does not get ready: ${this.log}`);
  }
}

const admin = (port, method, target, body) =>
  ask(port, method, `/api/v1/admin${target}`, { body, headers: { authorization: `Bearer ${ADMIN}` } });
const psql = (query) =>
  execFileSync('psql', [process.env.DATABASE_URL, '-Atc', query], { maxBuffer: 1 << 28 }).toString().trim().split('\n').filter(Boolean);

const faults = (servers) => [
  ['a server is killed', async () => { const s = servers[0]; await s.kill(); await pause(500); s.start(); }],
  ['Valkey is killed and comes back empty', async () => { await run(stores, ['kill', 'valkey']); await pause(1500); await run(stores, ['revive', 'valkey']); }],
  ['Postgres is killed', async () => { await run(stores, ['kill', 'postgres']); await pause(1500); await run(stores, ['revive', 'postgres']); }],
  ['Postgres stands still', async () => { await run(stores, ['pause', 'postgres']); await pause(3500); await run(stores, ['resume', 'postgres']); }],
  ['Valkey stands still', async () => { await run(stores, ['pause', 'valkey']); await pause(2500); await run(stores, ['resume', 'valkey']); }],
  ['a server stands still', async () => { const s = servers[1]; s.child.kill('SIGSTOP'); await pause(4500); s.child.kill('SIGCONT'); }],
  ['a server is told to stop', async () => { const s = servers[2]; await s.kill('SIGTERM'); s.start(); }],
];

test('nothing given out is lost, doubled or out of order', { timeout: 3_000_000 }, async (t) => {
  const servers = [];
  for (let i = 0; i < 3; i++) servers.push(new Server(await freePort()));
  servers.forEach((server) => server.start());
  t.after(() => Promise.all(servers.map((server) => server.kill().catch(() => {}))));
  for (const server of servers) await server.ready();
  const made = await admin(servers[0].port, 'POST', '/rooms', { id: 'sale', ratePerMinute: 1200, maxConcurrent: 400, passedTtlSec: 20, queueMaxPerIp: null });
  assert.equal(made.status, 200, JSON.stringify(made));

  const given = [], refused = [];
  let next = 0, done = false;
  const visitor = async () => {
    while (next < VISITORS || !done) {
      const index = next++;
      const began = Date.now();
      const answer = await ask(servers[index % 3].port, 'POST', '/api/join', { body: { roomId: 'sale' }, headers: { 'x-forwarded-for': `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}` } });
      if (answer.status === 200) given.push({ token: answer.json.token, began, ended: Date.now() });
      else refused.push(answer.status);
      await pause(answer.status === 200 ? 20 : 100);
    }
  };
  const schedule = (async () => {
    await pause(1000);
    do {
      for (const [name, fault] of faults(servers)) {
        t.diagnostic(`${name} after ${given.length} places`);
        await fault();
        await pause(1500);
      }
    } while (next < VISITORS);
    done = true;
  })();
  await Promise.all([schedule, ...Array.from({ length: WIDTH }, visitor)]);
  for (const server of servers) await server.ready();
  await pause(4000);

  const tickets = given.map(({ token }) => JSON.parse(Buffer.from(token.split('.')[0], 'base64url')).n);
  t.diagnostic(`${given.length} given, ${refused.length} refused: ${JSON.stringify(refused.reduce((sum, s) => ({ ...sum, [s]: (sum[s] ?? 0) + 1 }), {}))}`);
  const voids = psql("SELECT (body->>'from_seq')||' '||(body->>'to_seq') FROM qm_journal WHERE event='voided'").map((line) => line.split(' ').map(Number)).filter(([a, b]) => a <= b);
  const stands = (seq) => !voids.some(([a, b]) => seq >= a && seq <= b);
  const joins = psql("SELECT seq||' '||(body->>'n') FROM qm_journal WHERE room='sale' AND event='join' ORDER BY seq").map((line) => line.split(' ').map(Number)).filter(([seq]) => stands(seq));
  joins.forEach(([, n], index) => assert.equal(n, index + 1, 'ticket numbers are dense and in order'));
  assert.equal(new Set(tickets).size, tickets.length, 'no ticket was given out twice');
  assert.ok(Math.max(...tickets) <= joins.length, 'every ticket given out is in the journal');
  t.diagnostic(`${joins.length} joins stand, ${voids.length} batches void`);
  // Whoever had the answer before another asked stands before that one.
  const byEnd = given.map((g, i) => ({ ...g, n: tickets[i] })).sort((a, b) => a.ended - b.ended);
  let most = 0, at = 0;
  for (const g of [...byEnd].sort((a, b) => a.began - b.began)) {
    while (at < byEnd.length && byEnd[at].ended < g.began) most = Math.max(most, byEnd[at++].n);
    assert.ok(g.n > most, `ticket ${g.n} was asked for after ${most} was answered`);
  }
  const passes = psql("SELECT body->>'at'||' '||(body->'ranges')::text FROM qm_journal WHERE room='sale' AND event='passed' ORDER BY seq");
  let front = 0;
  for (const line of passes) for (const [a, b] of JSON.parse(line.slice(line.indexOf(' ') + 1))) { assert.ok(a > front, 'first in, first out'); front = b; }
  t.diagnostic(`${front} released in ${passes.length} steps`);
  const verified = await run(process.env.QM_BIN, ['journal', 'verify'], { env: environment }).catch((error) => error);
  assert.ok(!verified.code, `journal verify: ${verified.stderr}`);

  const lists = await Promise.all(servers.map((server) => admin(server.port, 'GET', '/rooms')));
  const [first, ...others] = lists.map(({ json }) => json.rooms.find(({ id }) => id === 'sale').nextTicket);
  assert.equal(first, joins.length + 1, 'replicas stand where the journal stands');
  others.forEach((other) => assert.equal(other, first, 'replicas agree'));
});
