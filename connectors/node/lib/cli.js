'use strict';

// `queue-manager verify|update`. Exit codes: 0 all well, 1 a failed check or an old version,
// 2 wrong usage, 3 the queue server cannot be reached.

const { readFileSync } = require('node:fs');
const path = require('node:path');

const { ask } = require('./ask.js');
const { compareVersions, json, registryEntry, verifyUrl } = require('./drift.js');
const { originOf } = require('./options.js');
const own = require('../package.json');

const OK = 0;
const FAILED = 1;
const USAGE = 2;
const UNREACHABLE = 3;
const TIMEOUT_MS = 10_000;

const HELP = `Usage: queue-manager <command> [options]

Commands
  verify    asks the queue server whether an installation is right, before it goes live
  update    tells whether the installed version is the one the queue server ships

Options of verify
  --server URL       origin of the queue server       (or QM_SERVER)
  --room ID          the room, as the console shows it (or QM_ROOM)
  --origin URL       origin of the site               (or QM_ORIGIN)
  --url URL          a page of the site; names the origin too
  --key KEY          the Public API key to check too  (better QM_PUBLIC_API_KEY: command lines are seen)
  --connector ID     what is installed: node (default), snippet, cloudflare, wordpress, gtm
  --connector-version VERSION   its version, where it is not this package's
  --strict           a warning fails too
  --json             the server's report as JSON

Options of update
  --server URL       origin of the queue server (or QM_SERVER, or where the package was installed from)
  --json             the result as JSON

Anywhere
  --help, --version

What is not given is read from the environment, then from "queueManager": {server, room, origin} in package.json.

Exit codes: 0 all well, 1 a failed check or an old version, 2 wrong usage, 3 server not reachable.
`;

const FLAGS = {
  verify: ['strict', 'json'],
  update: ['json'],
};
const VALUES = {
  verify: ['server', 'room', 'origin', 'url', 'key', 'connector', 'connector-version'],
  update: ['server'],
};

class UsageError extends Error {}

/** `--name value`, `--name=value` and flags, each at most once. */
function readArguments(command, words) {
  const found = {};
  for (let i = 0; i < words.length; i += 1) {
    const [, name, inline] = /^--([a-z-]+)(?:=(.*))?$/s.exec(words[i]) ?? [];
    const isFlag = FLAGS[command].includes(name);
    if (name === undefined || (!isFlag && !VALUES[command].includes(name))) throw new UsageError(`${command} has no option ${words[i]}`);
    if (name in found) throw new UsageError(`--${name} is given twice`);
    if (isFlag && inline !== undefined) throw new UsageError(`--${name} takes no value`);
    const value = isFlag ? true : (inline ?? words[(i += 1)]);
    if (value === undefined || value === '' || (!isFlag && inline === undefined && value.startsWith('--'))) {
      throw new UsageError(`--${name} needs a value`);
    }
    found[name] = value;
  }
  return found;
}

function readPackage(folder) {
  try {
    const found = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    return found !== null && typeof found === 'object' ? found : {};
  } catch {
    return {};
  }
}

/** The server a project installed this package from, by the address in its package.json. */
function installedFrom(project) {
  for (const list of ['dependencies', 'devDependencies', 'optionalDependencies']) {
    const address = project[list] && project[list][own.name];
    if (typeof address !== 'string' || !/^https?:/.test(address)) continue;
    try {
      return new URL(address).origin;
    } catch {
      // Not an address: nothing to learn from it.
    }
  }
  return undefined;
}

function readServer(given, env, project) {
  const settings = project.queueManager ?? {};
  const text = given.server ?? env.QM_SERVER ?? settings.server ?? installedFrom(project);
  if (!text) throw new UsageError('--server is missing: the origin of the queue server');
  const server = originOf(text);
  if (!server) throw new UsageError(`--server ${text} is no origin like https://queue.example.com`);
  return server;
}

function explain(answer, server) {
  if (answer.failure) return `cannot reach ${server}: ${answer.message ?? answer.failure}`;
  if (answer.status === 429) return `${server} is busy (429): try again in ${answer.headers['retry-after'] ?? 'some'} seconds`;
  if (answer.status >= 300 && answer.status < 400) return `${server} redirects to ${answer.headers.location}: use that origin as --server`;
  return `${server} does not answer as a queue server (status ${answer.status})`;
}

const MARKS = { pass: 'ok  ', fail: 'FAIL', warn: 'warn', info: 'info' };

function print(report, io) {
  for (const check of report.checks) {
    io.out(`${MARKS[check.status] ?? check.status}  ${check.id}: ${check.title}`);
    if (check.detail && check.status !== 'pass') io.out(`      ${check.detail}`);
    if (check.fix && check.status !== 'pass') io.out(`      -> ${check.fix}`);
  }
}

async function verify(given, env, io) {
  const project = readPackage(process.cwd());
  const settings = project.queueManager ?? {};
  const server = readServer(given, env, project);
  const roomId = given.room ?? env.QM_ROOM ?? settings.room;
  if (!roomId) throw new UsageError('--room is missing: the room id, as the console shows it');
  const origin = given.origin ?? (given.url ? undefined : (env.QM_ORIGIN ?? settings.origin));
  if (!origin && !given.url) throw new UsageError('--origin is missing: the origin of the site, or --url, a page of it');
  const key = (given.key ?? env.QM_PUBLIC_API_KEY ?? '').trim();
  const connector = given.connector ?? 'node';
  const version = given['connector-version'] ?? (connector === 'node' ? installedVersion() : undefined);
  const headers = [['accept', 'application/json']];
  if (key && !/^[\x21-\x7e]+$/.test(key)) throw new UsageError('the Public API key has characters no key has');
  if (key) headers.push(['authorization', `Bearer ${key}`]);
  const address = verifyUrl(server, { roomId: String(roomId), origin, url: given.url, connector, version });
  const answer = await ask({ url: address, headers }, TIMEOUT_MS);
  if (answer.status === 400 || answer.status === 414) {
    const body = jsonBody(answer);
    io.err(`the queue server refuses the question: ${body.error ?? answer.body.slice(0, 200)}`);
    return FAILED;
  }
  const report = json(answer);
  if (!report || !Array.isArray(report.checks)) {
    io.err(explain(answer, server));
    return UNREACHABLE;
  }
  const count = (status) => report.checks.filter((check) => check.status === status).length;
  const isRight = report.ok === true && count('fail') === 0 && !(given.strict && count('warn') > 0);
  if (given.json) io.out(JSON.stringify(report, null, 2));
  else {
    print(report, io);
    const verdict = isRight ? 'the installation is right' : 'the installation is NOT right';
    io.out(`room "${roomId}" on ${server}: ${verdict} (${count('fail')} failed, ${count('warn')} warnings)`);
  }
  return isRight ? OK : FAILED;
}

function jsonBody(answer) {
  try {
    return JSON.parse(answer.body) ?? {};
  } catch {
    return {};
  }
}

/** The version in the project at hand; this package's own when it is run from elsewhere. */
function installedVersion() {
  const found = readPackage(path.join(process.cwd(), 'node_modules', ...own.name.split('/')));
  return typeof found.version === 'string' ? found.version : own.version;
}

async function update(given, env, io) {
  const server = readServer(given, env, readPackage(process.cwd()));
  const { answer, entry } = await registryEntry(server, TIMEOUT_MS);
  if (!entry) {
    io.err(explain(answer, server));
    return UNREACHABLE;
  }
  const installed = installedVersion();
  const order = compareVersions(installed, entry.version);
  const word = order < 0 ? 'behind' : order > 0 ? 'ahead' : 'current';
  if (given.json) io.out(JSON.stringify({ installed, served: entry.version, status: word, upgrade: entry.upgrade }, null, 2));
  else if (order === 0) io.out(`${own.name} ${installed} is what ${server} ships`);
  else io.out(`${own.name} ${installed} is ${word}: ${server} ships ${entry.version}`);
  if (order < 0 && !given.json) io.out(`upgrade with: ${entry.upgrade}`);
  return order < 0 ? FAILED : OK;
}

/** Runs a command; gives the exit code. */
async function main(words, env, io = { out: (line) => console.log(line), err: (line) => console.error(line) }) {
  const [command, ...rest] = words;
  if (words.includes('--help') || command === 'help' || command === '-h') {
    io.out(HELP.trimEnd());
    return OK;
  }
  if (command === '--version' || command === '-v') {
    io.out(own.version);
    return OK;
  }
  try {
    if (command === 'verify') return await verify(readArguments('verify', rest), env, io);
    if (command === 'update') return await update(readArguments('update', rest), env, io);
    throw new UsageError(command === undefined ? 'a command is missing' : `there is no command ${command}`);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    io.err(`queue-manager: ${error.message}`);
    io.err('Try: queue-manager --help');
    return USAGE;
  }
}

module.exports = { main };
