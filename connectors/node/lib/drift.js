'use strict';

// Once in the life of a client, beside the first request and never in its way: is this the version
// the queue server ships, and is the installation right? Nothing is told when nobody answers.

const { ask } = require('./ask.js');
const { version } = require('../package.json');

const TIMEOUT_MS = 5000;
const REGISTRY_BYTES_MAX = 512 * 1024;

function json(answer) {
  if (answer.status !== 200) return undefined;
  try {
    return JSON.parse(answer.body);
  } catch {
    return undefined;
  }
}

/** `a` - `b`, by their numbers; a part that is no number is the oldest. */
function compareVersions(a, b) {
  const numbers = (text) =>
    String(text)
      .split('.')
      .map((part) => (/^\d+$/.test(part) ? Number(part) : -1));
  const [left, right] = [numbers(a), numbers(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const difference = (left[i] ?? -1) - (right[i] ?? -1);
    if (difference !== 0) return Math.sign(difference);
  }
  return 0;
}

/** The registry's entry of this package, or undefined. */
async function registryEntry(server, timeoutMs = TIMEOUT_MS) {
  const answer = await ask(
    { url: `${server}/api/v1/connectors`, headers: [['accept', 'application/json']] },
    timeoutMs,
    REGISTRY_BYTES_MAX,
  );
  const document = json(answer);
  const list = document && Array.isArray(document.connectors) ? document.connectors : [];
  const entry = list.find((connector) => connector && connector.id === 'node');
  return { answer, entry: entry && typeof entry.version === 'string' ? entry : undefined };
}

/** The address of a verification. */
function verifyUrl(server, { roomId, origin, url, connector = 'node', version: told }) {
  const query = new URLSearchParams({ roomId });
  if (origin) query.set('origin', origin);
  if (url) query.set('url', url);
  query.set('connector', connector);
  if (told) query.set('version', told);
  return `${server}/api/v1/verify?${query}`;
}

async function lookAt(client, origin) {
  const { server, roomId, publicApiKey } = client.options;
  const { entry } = await registryEntry(server);
  if (entry && compareVersions(version, entry.version) < 0) {
    client.report.event(
      'drift',
      `this is @queue-manager/node ${version}, the queue server ships ${entry.version}; upgrade with: ${entry.upgrade}`,
    );
  }
  const headers = publicApiKey ? [['authorization', `Bearer ${publicApiKey}`]] : [];
  const report = json(await ask({ url: verifyUrl(server, { roomId, origin, version }), headers }, TIMEOUT_MS));
  for (const check of report && Array.isArray(report.checks) ? report.checks : []) {
    if (check && check.status === 'fail') {
      client.report.event('verify', `${check.id}: ${check.title}${check.fix ? ` (${check.fix})` : ''}`);
    }
  }
}

const watched = new WeakSet();

function watchInstallation(client, origin) {
  if (watched.has(client)) return;
  watched.add(client);
  setImmediate(() => {
    lookAt(client, origin).catch(() => {});
  }).unref();
}

module.exports = { compareVersions, json, registryEntry, verifyUrl, watchInstallation };
