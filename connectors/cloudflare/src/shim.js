// Around the Worker in Rust: starts the module, and sees to it that a fault in it neither hangs a
// request nor breaks the isolate. The site is then reached unchecked, and the answer says so.

import { fetch as door, initSync } from './core.js';
import module from './core_bg.wasm';

initSync({ module });

// The Worker's panic hook sets this flag; promises of a stopped instance never settle by themselves.
// wasm-bindgen's glue starts a fresh instance at the next call.
const waiting = new Set();
Object.defineProperty(globalThis.__worker_init_state, 'criticalError', {
  get: () => false,
  set: (isCritical) => {
    if (isCritical) for (const fail of [...waiting]) fail(new Error('the core stopped'));
  },
});

async function unchecked(request, error) {
  console.error(`queue-manager: a fault, a visitor passes unchecked: ${error?.stack ?? error}`);
  const headers = { 'x-qm-failover': 'invalid-response' };
  if (request.bodyUsed) return new Response(null, { status: 502, headers });
  const outgoing = new Request(request);
  outgoing.headers.delete('x-qm-failover');
  const response = await fetch(outgoing);
  if (response.status === 101) return response;
  const answer = new Response(response.body, response);
  answer.headers.set('x-qm-failover', 'invalid-response');
  return answer;
}

export default {
  async fetch(request, env, ctx) {
    let fail;
    const stopped = new Promise((_, reject) => {
      fail = reject;
      waiting.add(fail);
    });
    try {
      return await Promise.race([door(request, env, ctx), stopped]);
    } catch (error) {
      return await unchecked(request, error);
    } finally {
      waiting.delete(fail);
    }
  },
};
