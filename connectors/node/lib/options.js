'use strict';

// Reads the options once, at start. What cannot work is thrown here, in words that name the option,
// and never found out by a visitor.

const KNOWN = ['server', 'roomId', 'publicApiKey', 'timeoutMs', 'trustProxy', 'vouchIp', 'origin', 'cookie', 'gate', 'vouch', 'onEvent'];
const TIMEOUT_MS = 2000;
const TIMEOUT_MS_MAX = 30_000;
const PROXIES_MAX = 32;
const ROOM_ID = /^[A-Za-z0-9_-]{1,64}$/;
const GATES = ['all', 'navigations', 'documents'];
const COOKIE_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;

function fault(name, value, wanted) {
  // A key is never shown.
  const shown = name === 'publicApiKey' ? '' : ` (it is ${describe(value)})`;
  return new TypeError(`queue-manager: option ${name} must be ${wanted}${shown}`);
}

function describe(value) {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  if (value === null || typeof value !== 'object') return String(value).slice(0, 80);
  return Array.isArray(value) ? 'a list' : 'an object';
}

/** The origin of an http(s) address without path, query and user name; undefined if it is none. */
function originOf(text) {
  if (typeof text !== 'string' || /[\s\\?#@*]/.test(text.trim())) return undefined;
  let url;
  try {
    url = new URL(text.trim());
  } catch {
    return undefined;
  }
  const bare = url.pathname === '/' && (url.protocol === 'https:' || url.protocol === 'http:');
  return bare && url.hostname ? url.origin : undefined;
}

function whole(name, value, fallback, min, max) {
  if (value === undefined) return fallback;
  if (!Number.isInteger(value) || value < min || value > max) throw fault(name, value, `a whole number, ${min} to ${max}`);
  return value;
}

function flag(name, value, fallback) {
  if (value === undefined) return fallback;
  if (typeof value !== 'boolean') throw fault(name, value, 'true or false');
  return value;
}

function callback(name, value) {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'function') throw fault(name, value, 'a function');
  return value;
}

function readKey(value, vouch) {
  const key = typeof value === 'string' ? value.trim() : value;
  if (!vouch) {
    if (key !== undefined && key !== '') throw fault('publicApiKey', value, 'left out when vouch is false');
    return undefined;
  }
  if (key === undefined || key === null || key === '') {
    throw new TypeError(
      'queue-manager: option publicApiKey is missing. Set it to the PUBLIC_API_KEY of the queue server: without it every ' +
        'visitor would be bound to the address of this server, and nobody could get in. (vouch: false asks without a key.)',
    );
  }
  if (typeof key !== 'string' || !/^[\x21-\x7e]+$/.test(key)) throw fault('publicApiKey', value, 'a text without blanks inside');
  return key;
}

function readCookie(value, roomId) {
  if (value === undefined || value === null) return { secure: undefined, name: `qm_${roomId}` };
  if (typeof value !== 'object' || Array.isArray(value)) throw fault('cookie', value, 'an object {secure, name}');
  for (const name of Object.keys(value)) {
    if (name !== 'secure' && name !== 'name') throw fault(`cookie.${name}`, value[name], 'left out: only secure and name are known');
  }
  const name = value.name === undefined ? `qm_${roomId}` : value.name;
  if (typeof name !== 'string' || !COOKIE_NAME.test(name)) throw fault('cookie.name', name, 'a cookie name');
  return { secure: flag('cookie.secure', value.secure, undefined), name };
}

/** The options as the rest of the package uses them. Throws a TypeError that says what to change. */
function readOptions(given) {
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    throw new TypeError('queue-manager: options must be an object, at least {server, roomId, publicApiKey}');
  }
  for (const name of Object.keys(given)) {
    if (!KNOWN.includes(name)) throw new TypeError(`queue-manager: there is no option ${name}; known are ${KNOWN.join(', ')}`);
  }
  const server = originOf(given.server);
  if (!server) throw fault('server', given.server, 'the origin of the queue server, like https://queue.example.com, without a path');
  const roomId = typeof given.roomId === 'string' ? given.roomId.trim() : given.roomId;
  if (typeof roomId !== 'string' || !ROOM_ID.test(roomId)) {
    throw fault('roomId', given.roomId, 'a room id as the console shows it: letters, digits, "-" and "_", at most 64');
  }
  const origin = given.origin === undefined ? undefined : originOf(given.origin);
  if (given.origin !== undefined && !origin) {
    throw fault('origin', given.origin, 'the public origin of this site, like https://shop.example.com, without a path');
  }
  const vouch = flag('vouch', given.vouch, true);
  const gate = given.gate ?? 'all';
  if (!GATES.includes(gate)) throw fault('gate', gate, `one of ${GATES.join(', ')}`);
  return Object.freeze({
    server,
    roomId,
    publicApiKey: readKey(given.publicApiKey, vouch),
    timeoutMs: whole('timeoutMs', given.timeoutMs, TIMEOUT_MS, 1, TIMEOUT_MS_MAX),
    trustProxy: whole('trustProxy', given.trustProxy, 0, 0, PROXIES_MAX),
    vouchIp: callback('vouchIp', given.vouchIp),
    origin,
    cookie: readCookie(given.cookie, roomId),
    gate,
    vouch,
    onEvent: callback('onEvent', given.onEvent),
  });
}

module.exports = { originOf, readOptions };
