'use strict';

// What a request says, for the core: the page's address, the visitor's address, and the headers the
// rules read. Nothing here decides, and nothing here throws on what a visitor sends.

const { isIP } = require('node:net');

const HEADERS = ['cookie', 'user-agent', 'sec-fetch-dest', 'sec-fetch-mode', 'sec-purpose', 'purpose', 'x-moz', 'x-forwarded-for'];

/** Stands for an origin nobody told us. It is no site, so no answer and no redirect leads there. */
const NO_ORIGIN = 'https://unknown.invalid';

/** Node reads header octets as Latin-1; the queue server counts the octets that were sent. */
const utf8 = (text) => (/[^\x00-\x7f]/.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text);

function header(req, name) {
  const value = req.headers[name];
  return Array.isArray(value) ? value.join(name === 'cookie' ? '; ' : ', ') : value;
}

/** The last value of a list that proxies append to: what the nearest proxy says. */
function nearest(req, name) {
  const value = header(req, name);
  return value === undefined ? undefined : value.slice(value.lastIndexOf(',') + 1).trim();
}

/** The path and query as the client sent them, whatever a router cut off. */
function pathOf(req) {
  const target = utf8(String(req.originalUrl ?? req.url ?? '/'));
  if (target.startsWith('/')) return target;
  // Absolute form: the authority in it is the client's word, so only the rest counts.
  const rest = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(.*)$/i.exec(target)?.[1] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

const bare = (address) => (address.startsWith('::ffff:') ? address.slice(7) : address);

/** Whether the client named the very address its connection came in on: that it cannot choose. */
function isOwnAddress(req, host) {
  const socket = req.socket;
  const found = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::(\d{1,5}))?$/i.exec(host);
  if (!found || !socket || !socket.localAddress) return false;
  const standard = socket.encrypted ? 443 : 80;
  if (Number(found[2] ?? standard) !== socket.localPort) return false;
  const local = bare(socket.localAddress);
  const isLoopback = local === '::1' || local.startsWith('127.');
  const named = found[1].replace(/^\[|\]$/g, '').toLowerCase();
  return named === local || (isLoopback && named === 'localhost');
}

/**
 * The public origin of the page: as configured, or as a trusted proxy says. A raw Host header is
 * the visitor's own word about where the page is, so it counts for nothing; undefined then.
 */
function originFor(req, options) {
  if (options.origin) return options.origin;
  // HTTP/2 has its own name for it.
  const host = header(req, 'host') ?? header(req, ':authority') ?? '';
  const scheme = req.socket && req.socket.encrypted ? 'https' : 'http';
  if (options.trustProxy > 0) {
    const said = (nearest(req, 'x-forwarded-proto') ?? '').toLowerCase();
    const forwarded = nearest(req, 'x-forwarded-host') || host;
    const plain = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i.test(forwarded);
    return plain ? `${said === 'https' || said === 'http' ? said : scheme}://${forwarded.toLowerCase()}` : undefined;
  }
  return isOwnAddress(req, host) ? `${scheme}://${host.toLowerCase()}` : undefined;
}

/** An address as text, or undefined: decoration such as a port or brackets is taken off. */
function plainAddress(text) {
  if (typeof text !== 'string') return undefined;
  let address = text.trim().replace(/^"(.*)"$/, '$1');
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(address);
  if (bracketed) address = bracketed[1];
  else if (/^[\d.]+:\d+$/.test(address)) address = address.slice(0, address.indexOf(':'));
  return isIP(address) && !address.includes('%') ? address : undefined;
}

/** The entry of X-Forwarded-For that `trustProxy` proxies account for; undefined without one. */
function forwardedEntry(req, trustProxy) {
  const entries = (header(req, 'x-forwarded-for') ?? '').split(',');
  return entries.length >= trustProxy ? entries[entries.length - trustProxy] : undefined;
}

/** The socket's peer; a local socket has none and a closed one neither, which vouches for nobody. */
function peerOf(req) {
  const address = req.socket && req.socket.remoteAddress;
  return (address && plainAddress(address.replace(/%.*$/, ''))) || '0.0.0.0';
}

/** The address of `vouchIp`, undefined when it gives none: the socket's address counts then. */
function vouched(req, options, warn) {
  if (!options.vouchIp) return undefined;
  let given;
  try {
    given = options.vouchIp(req);
  } catch (error) {
    warn(`vouchIp threw ${error instanceof Error ? error.message : String(error)}: the socket's address was vouched for`);
    return undefined;
  }
  const address = plainAddress(given);
  if (!address) warn("vouchIp gave no IP address: the socket's address was vouched for, which visitors behind a proxy cannot pass with");
  return address;
}

function warnOfProxies(req, options, warn) {
  if (options.vouchIp || !options.vouch || header(req, 'x-forwarded-for') === undefined) return;
  if (options.trustProxy === 0) {
    warn(
      "requests carry X-Forwarded-For, but neither trustProxy nor vouchIp is set: the socket's address is vouched for. " +
        'Behind a proxy every visitor is then refused (bound_to_other_client). Set trustProxy to the number of proxies',
    );
  } else if (!plainAddress(forwardedEntry(req, options.trustProxy))) {
    warn(`entry ${options.trustProxy} from the right of X-Forwarded-For is no IP address: the socket's address was vouched for`);
  }
}

/** The request as the core reads it. `warn` is called with what an operator should change. */
function readFacts(req, options, warn) {
  warnOfProxies(req, options, warn);
  const origin = originFor(req, options);
  if (!origin) warn("the public origin of this site is not known, so visitors return to the room's targetUrl: set origin, or trustProxy");
  const headers = {};
  for (const name of HEADERS) {
    const value = header(req, name);
    if (value !== undefined) headers[name] = utf8(value);
  }
  return {
    facts: {
      method: String(req.method ?? 'GET').toUpperCase(),
      url: (origin ?? NO_ORIGIN) + pathOf(req),
      headers,
      peer: peerOf(req),
      address: vouched(req, options, warn),
    },
    origin: origin ?? NO_ORIGIN,
  };
}

module.exports = { NO_ORIGIN, readFacts, plainAddress };
