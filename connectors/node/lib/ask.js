'use strict';

// One GET to the queue server: bounded in time and size, redirects not followed, never rejecting.
// It uses node:http and keeps connections open, because it stands in front of every page.

const http = require('node:http');
const https = require('node:https');

const ANSWER_BYTES_MAX = 64 * 1024;
const AGENTS = {
  'http:': new http.Agent({ keepAlive: true, maxFreeSockets: 32, scheduling: 'lifo' }),
  'https:': new https.Agent({ keepAlive: true, maxFreeSockets: 32, scheduling: 'lifo' }),
};

/**
 * Gives {status, body, headers}, or {failure: 'timeout'|'unreachable'|'unreadable', message}.
 * `query` is {url, headers: [[name, value]]}.
 */
function ask(query, timeoutMs, bytesMax = ANSWER_BYTES_MAX) {
  return new Promise((resolve) => {
    const url = new URL(query.url);
    const { request: send } = url.protocol === 'https:' ? https : http;
    const headers = Object.fromEntries(query.headers);
    let current;
    let done = false;
    const finish = (answer) => {
      if (done) return;
      done = true;
      clearTimeout(timer);
      resolve(answer);
      if (answer.failure && current) current.destroy();
    };
    const timer = setTimeout(() => finish({ failure: 'timeout', message: `no answer in ${timeoutMs} ms` }), timeoutMs);
    const start = () => {
      const request = send(url, { agent: AGENTS[url.protocol], headers }, (response) => read(response, bytesMax, finish));
      current = request;
      request.on('error', (error) => {
        // A kept connection that the server closed at this very moment: nobody has read the question.
        if (request.reusedSocket && error.code === 'ECONNRESET' && !request.res && !done) start();
        else finish({ failure: 'unreachable', message: error.code ?? error.message });
      });
      request.end();
    };
    start();
  });
}

function read(response, bytesMax, finish) {
  const parts = [];
  let size = 0;
  response.on('data', (part) => {
    size += part.length;
    if (size > bytesMax) finish({ failure: 'unreadable', message: 'the answer is too long' });
    else parts.push(part);
  });
  response.on('end', () => {
    if (!response.complete) return finish({ failure: 'unreadable', message: 'the answer broke off' });
    const body = Buffer.concat(parts).toString('utf8');
    return finish({ status: response.statusCode, headers: response.headers, body });
  });
  response.on('error', (error) => finish({ failure: 'unreachable', message: error.code ?? error.message }));
  response.on('close', () => finish({ failure: 'unreachable', message: 'the answer broke off' }));
}

module.exports = { ask };
