// Asks the queue server whether this installation is right, before it is deployed. Exit 1 stops the
// deploy. Settings come from wrangler.toml, or from the environment, which wins:
// QM_SERVER, QM_ROOM, QM_PUBLIC_API_KEY (secrets cannot be read back), QM_SITE.

import { existsSync, readFileSync } from 'node:fs';

const PATIENCE_MS = 10_000;

/** The values in quotes of the file; enough for the file as it is shipped. */
function fromFile(name) {
  if (!existsSync('wrangler.toml')) return '';
  const line = new RegExp(`^\\s*${name}\\s*=\\s*"([^"]*)"`, 'm').exec(readFileSync('wrangler.toml', 'utf8'));
  return line ? line[1] : '';
}

const setting = (name) => (process.env[name] ?? fromFile(name)).trim();
function stop(text) {
  console.error(`verify: ${text}`);
  process.exit(1);
}

const server = setting('QM_SERVER').replace(/\/$/, '');
const room = setting('QM_ROOM');
const key = setting('QM_PUBLIC_API_KEY');
const site = setting('QM_SITE');
if (!/^https?:\/\/[^/?#@\s]+$/.test(server)) stop(`QM_SERVER is "${server}": it must be an origin like https://queue.example.com`);
if (!/^[A-Za-z0-9_-]{1,64}$/.test(room)) stop(`QM_ROOM is "${room}": it must be the room's id as the console shows it`);
if (!key) stop('QM_PUBLIC_API_KEY is not set: without it the Worker checks nothing');

const query = new URLSearchParams({ roomId: room, connector: 'cloudflare' });
query.set('version', JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')).version);
if (site) query.set('origin', site);
let answer;
try {
  const response = await fetch(`${server}/api/v1/verify?${query}`, {
    headers: { Authorization: `Bearer ${key}` },
    redirect: 'manual',
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  answer = await response.json();
  if (response.status !== 200) stop(`the server answered ${response.status} ${answer.code ?? ''}`);
} catch (error) {
  stop(`${server} gives no answer: ${error.message}`);
}
if (!Array.isArray(answer?.checks)) stop(`${server} is no queue server`);
for (const check of answer.checks) {
  const fix = check.fix && check.status !== 'pass' ? ` (${check.fix})` : '';
  console.log(`${check.status.padEnd(5)} ${check.id}: ${check.title}${fix}`);
}
const refused = answer.checks.filter((check) => check.status === 'fail').map((check) => check.id);
// Not every server reports the key by itself; this Worker cannot do without it.
const keyCheck = answer.checks.find((check) => check.id === 'public_key');
if (keyCheck?.status !== 'pass' && !refused.includes('public_key')) refused.push('public_key');
if (!site) console.log('info  QM_SITE is not set, so no site was checked');
const blocking = site ? refused : refused.filter((id) => id !== 'tag_origin');
if (blocking.length > 0) stop(`not deployed: ${blocking.join(', ')}`);
console.log('verify: the installation is right');
