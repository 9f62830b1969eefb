'use strict';

const { FAILOVER, forward, respond } = require('./answer.js');
const { Client } = require('./client.js');

/** Takes `qm_token` out of a path and query, the rest keeps its text. */
function withoutPass(target) {
  const at = target.indexOf('?');
  if (at < 0) return target;
  const kept = target
    .slice(at + 1)
    .split('&')
    .filter((part) => {
      try {
        return decodeURIComponent(part.split('=')[0]) !== 'qm_token';
      } catch {
        return true;
      }
    });
  return kept.length > 0 ? `${target.slice(0, at)}?${kept.join('&')}` : target.slice(0, at);
}

/** The door of a room, for Express, Connect and node:http. Throws on options that cannot work. */
function middleware(options) {
  const client = new Client(options);
  return async function queueManager(req, res, next) {
    // Ours alone to set: a client's own would be noise in somebody's monitoring.
    delete req.headers[FAILOVER];
    const decision = await client.check(req);
    // The visitor left meanwhile, or somebody else answered.
    if (res.headersSent || res.writableEnded || res.destroyed) return;
    if (decision.action === 'respond') {
      respond(req, res, decision);
      return;
    }
    if (decision.checked || decision.failover) forward(res, decision);
    if (decision.url) {
      req.url = withoutPass(req.url);
      if (typeof req.originalUrl === 'string') req.originalUrl = withoutPass(req.originalUrl);
      // Express 4 has read the query before any middleware.
      if (req.query && typeof req.query === 'object') delete req.query.qm_token;
    }
    if (typeof next === 'function') next();
  };
}

module.exports = { middleware };
