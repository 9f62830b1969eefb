'use strict';

// What the door adds to answers: redirects to the waiting page, our cookies, and care that no cache
// keeps a page somebody had to queue for.

const FAILOVER = 'x-qm-failover';

function appendHeader(res, name, value) {
  const held = res.getHeader(name);
  res.setHeader(name, held === undefined ? value : [].concat(held, value));
}

/** Answers the visitor in place of the site. */
function respond(req, res, { status, headers, body }) {
  res.statusCode = status;
  for (const [name, value] of headers) {
    if (name === 'set-cookie') appendHeader(res, name, value);
    else res.setHeader(name, value);
  }
  res.end(req.method === 'HEAD' ? undefined : body);
}

/** A lifetime that no shared cache uses: one visitor's page is not everybody's. */
function personal(value, setsCookie) {
  if (setsCookie) return 'no-store';
  const parts = String(value ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
  const kept = parts.filter((part) => !/^(public|s-maxage\s*=.*)$/i.test(part));
  const isClosed = kept.some((part) => /^(private|no-store)$/i.test(part));
  return (isClosed ? kept : ['private', ...kept]).join(', ');
}

/** The headers given to writeHead as pairs, whatever their form. */
function pairsOf(given) {
  if (Array.isArray(given)) {
    if (Array.isArray(given[0])) return given;
    const pairs = [];
    for (let i = 0; i + 1 < given.length; i += 2) pairs.push([given[i], given[i + 1]]);
    return pairs;
  }
  return given && typeof given === 'object' ? Object.entries(given) : [];
}

/**
 * Lets the request go on. What the site answers later is made `private`, or `no-store` where it
 * carries our cookie, and has our failover header or none.
 */
function forward(res, { cookies, failover }) {
  const setsCookie = cookies.length > 0;
  const writeHead = res.writeHead;
  res.writeHead = function writePersonalHead(status, ...rest) {
    res.writeHead = writeHead;
    const message = typeof rest[0] === 'string' ? rest.shift() : undefined;
    let isFirstCookie = true;
    for (const [name, value] of pairsOf(rest[0])) {
      const isCookie = String(name).toLowerCase() === 'set-cookie';
      // Headers of writeHead replace those set before, but not our cookies.
      if (isCookie && !isFirstCookie) appendHeader(res, name, value);
      else res.setHeader(name, value);
      if (isCookie) isFirstCookie = false;
    }
    for (const cookie of cookies) appendHeader(res, 'set-cookie', cookie);
    res.setHeader('cache-control', personal(res.getHeader('cache-control'), setsCookie));
    if (setsCookie) res.removeHeader('expires');
    // These speak to caches over the head of Cache-Control.
    for (const name of res.getHeaderNames()) if (/(?:^|-)cdn-cache-control$|^surrogate-control$/.test(name)) res.removeHeader(name);
    if (failover) res.setHeader(FAILOVER, failover);
    else res.removeHeader(FAILOVER);
    return message === undefined ? writeHead.call(res, status) : writeHead.call(res, status, message);
  };
}

module.exports = { FAILOVER, forward, personal, respond };
