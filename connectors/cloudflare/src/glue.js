// The Queue Manager door as a Cloudflare Worker in one file. This part speaks HTTP and nothing
// else; what it does with a request is decided by the queue's own core, which follows below as
// compiled code (the same as in the server).
//
//   vars: QM_SERVER, QM_ROOM, QM_PUBLIC_API_KEY (required, better as a secret), QM_GATE,
//         QM_VISITOR_KEY, QM_TOKEN_MAX_AGE_SEC (optional)
//   binding: QM_ANALYTICS, an Analytics Engine dataset (optional)
//
// Whatever goes wrong here or at the queue server, the visitor reaches the site, and the answer
// says so in X-QM-Failover.

const VERSION = '@VERSION@';
const FAILOVER = 'x-qm-failover';
const BUDGET_MS = 2000;
const ANSWER_BYTES_MAX = 65536;
const OP = { open: 10, plan: 11, conclude: 12, rulesQuery: 13, learnRules: 14, verifyQuery: 15, verifyFailures: 16 };
const HEADERS_READ = [
  'cookie',
  'user-agent',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-purpose',
  'purpose',
  'x-moz',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
];

// ---- the core: JSON in, JSON out ---------------------------------------------------------------

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** One instance of the core and the door opened in it. */
class Core {
  constructor(settings) {
    let high = 0;
    this.exports = instantiate({
      setTempRet0: (value) => {
        high = value;
      },
      getTempRet0: () => high,
    });
    this.high = () => high;
    const opened = this.call(OP.open, { settings });
    this.handle = opened.handle;
    this.usable = opened.usable;
    this.faults = opened.faults;
  }

  call(op, value) {
    const { memory, qm_alloc: alloc, qm_free: free, qm_call: invoke } = this.exports;
    const input = encoder.encode(JSON.stringify(value));
    const at = alloc(input.length) >>> 0;
    // The memory may have grown, so its buffer is looked at anew each time.
    new Uint8Array(memory.buffer).set(input, at);
    const length = invoke(op, at, input.length) >>> 0;
    const answerAt = this.high() >>> 0;
    free(at, input.length);
    const text = decoder.decode(new Uint8Array(memory.buffer, answerAt, length));
    free(answerAt, length);
    const answer = JSON.parse(text);
    if (answer.error) throw new Error(`the core: ${answer.error}`);
    return answer;
  }

  ask(op, value) {
    return this.call(op, { handle: this.handle, now: Date.now(), ...value });
  }
}

// ---- this isolate ------------------------------------------------------------------------------

let core;
let verified = false;
const saidOnce = new Set();

function settingsOf(env) {
  const text = (name) => (env[name] === undefined || env[name] === null ? '' : String(env[name]));
  return {
    server: text('QM_SERVER'),
    room: text('QM_ROOM'),
    publicApiKey: text('QM_PUBLIC_API_KEY'),
    gate: text('QM_GATE'),
    visitorKey: text('QM_VISITOR_KEY'),
    tokenMaxAgeSec: text('QM_TOKEN_MAX_AGE_SEC'),
    trustProxy: 'cf',
    passesServerHost: true,
  };
}

function coreOf(env) {
  if (!core) {
    core = new Core(settingsOf(env));
    for (const fault of core.faults) console.error(`queue-manager: ${fault}`);
  }
  return core;
}

/** Logs and counts what the core notes. */
function note(env, step) {
  const { note: noted, failover } = step;
  if (!noted) return;
  const lets = ['failover', 'key_refused', 'misconfigured'].includes(noted.kind);
  if (lets) console.error(`queue-manager: ${noted.text}`);
  else if (!saidOnce.has(noted.kind)) {
    saidOnce.add(noted.kind);
    console.warn(`queue-manager: ${noted.text}`);
  }
  if (lets) count(env, noted.kind, failover);
}

function count(env, kind, failover) {
  try {
    const room = String(env.QM_ROOM ?? '').slice(0, 64);
    env.QM_ANALYTICS?.writeDataPoint({ indexes: [room], blobs: [kind, failover, room], doubles: [1] });
  } catch (error) {
    console.error(`queue-manager: could not count a fail-open: ${error}`);
  }
}

// ---- the queue server --------------------------------------------------------------------------

/** The body as text, or null when it is over-long or not UTF-8. */
async function readText(response) {
  if (!response.body) return '';
  const reader = response.body.getReader();
  const parts = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    if (bytes > ANSWER_BYTES_MAX) {
      await reader.cancel();
      return null;
    }
    parts.push(value);
  }
  const all = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(all);
  } catch {
    return null;
  }
}

/** Asks the queue server once: `{status, body, etag}` or `{failure}`. Never throws. */
async function ask(query, signal) {
  const out = new Promise((resolve) => {
    if (signal.aborted) resolve({ failure: 'timeout' });
    signal.addEventListener('abort', () => resolve({ failure: 'timeout' }));
  });
  const answer = (async () => {
    try {
      const response = await fetch(query.url, { headers: query.headers, redirect: 'manual', signal });
      const body = await readText(response);
      if (body === null && response.status === 200) return { failure: 'unreadable' };
      return { status: response.status, body: body ?? '', etag: response.headers.get('etag') };
    } catch {
      return { failure: signal.aborted ? 'timeout' : 'unreachable' };
    }
  })();
  return Promise.race([answer, out]);
}

/** Learns the room's rules again when it is time, beside the request. */
function refreshRules(door, ctx) {
  const { query } = door.ask(OP.rulesQuery, {});
  if (!query) return;
  ctx.waitUntil(
    ask(query, AbortSignal.timeout(BUDGET_MS)).then((answer) => {
      if (!answer.failure) door.ask(OP.learnRules, answer);
    }).catch((error) => console.error(`queue-manager: rules: ${error}`)),
  );
}

/** Once per isolate: is this installation right? The failed points go to the log. */
function verifyOnce(door, request, ctx) {
  if (verified || !door.usable) return;
  verified = true;
  const { query } = door.ask(OP.verifyQuery, { url: request.url, connector: 'cloudflare', version: VERSION });
  ctx.waitUntil(
    ask(query, AbortSignal.timeout(5 * BUDGET_MS)).then((answer) => {
      const failed = answer.status === 200 ? door.call(OP.verifyFailures, { body: answer.body }).failed : null;
      if (!failed) console.error(`queue-manager: this installation could not be verified (${answer.failure ?? answer.status})`);
      for (const line of failed ?? []) console.error(`queue-manager: verification failed: ${line}`);
    }).catch((error) => console.error(`queue-manager: verification: ${error}`)),
  );
}

// ---- a request ---------------------------------------------------------------------------------

function factsOf(request) {
  const headers = {};
  for (const name of HEADERS_READ) {
    const value = request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  return { method: request.method, url: request.url, headers };
}

/** What is to be done with the request: a forward or a respond step. */
async function decide(request, env, ctx) {
  const door = coreOf(env);
  let step = door.ask(OP.plan, factsOf(request));
  if (step.do === 'ask') {
    refreshRules(door, ctx);
    verifyOnce(door, request, ctx);
    const signal = AbortSignal.timeout(BUDGET_MS);
    while (step.do === 'ask') {
      const answer = await ask(step, signal);
      step = door.ask(OP.conclude, { pending: step.pending, answer });
    }
  } else if (door.usable) {
    refreshRules(door, ctx);
  }
  note(env, step);
  return step;
}

/** To the site. The body, the upgrade and the answer's stream are not touched. */
async function forward(request, { url, failover, cookies }) {
  let outgoing = request;
  if (url || request.headers.has(FAILOVER)) {
    outgoing = new Request(url ?? request.url, request);
    outgoing.headers.delete(FAILOVER);
  }
  const response = await fetch(outgoing);
  const untouched = !failover && !cookies?.length && !response.headers.has(FAILOVER);
  if (untouched || response.status === 101) return response;
  const answer = new Response(response.body, response);
  answer.headers.delete(FAILOVER);
  if (failover) answer.headers.set(FAILOVER, failover);
  for (const cookie of cookies ?? []) answer.headers.append('set-cookie', cookie);
  return answer;
}

export default {
  async fetch(request, env, ctx) {
    let step;
    try {
      step = await decide(request, env, ctx);
    } catch (error) {
      // A fault of ours: the next request starts from a fresh core.
      core = undefined;
      console.error(`queue-manager: a fault, a visitor passes unchecked: ${error?.stack ?? error}`);
      step = { do: 'forward', failover: 'invalid-response' };
      count(env, 'fault', step.failover);
    }
    if (step.do === 'respond') return new Response(step.body || null, { status: step.status, headers: step.headers });
    return forward(request, step);
  },
};
