// Runs the vectors through the WebAssembly module: `node scripts/wasm-tests.mjs MODULE`.
//
// The module has a plain C ABI and imports nothing: memory, qm_alloc(len) -> ptr, qm_free(ptr, len),
// qm_call(op, ptr, len) -> u64 whose high half is the address and whose low half is the length of a
// JSON answer, which the caller frees. Vectors: core/vectors, and ../shared/vectors where it exists.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const OP = { verify: 1, sign: 2, scope: 3, jitter: 4 };
const FAILURES_SHOWN = 20;

/** The exports of the module as one function from (op, value) to value. */
function load(file) {
  const module = new WebAssembly.Module(readFileSync(file));
  const imports = WebAssembly.Module.imports(module);
  assert.deepEqual(imports, [], 'the module must import nothing');
  const { exports } = new WebAssembly.Instance(module, {});
  for (const name of ['memory', 'qm_alloc', 'qm_free', 'qm_call']) assert.ok(name in exports, `no export ${name}`);
  const { memory, qm_alloc: alloc, qm_free: free, qm_call: invoke } = exports;
  const raw = (op, bytes) => {
    const at = alloc(bytes.length) >>> 0;
    // The memory may have grown, so its buffer is looked at anew each time.
    new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
    const answer = BigInt.asUintN(64, invoke(op, at, bytes.length));
    free(at, bytes.length);
    const ptr = Number(answer >> 32n);
    const len = Number(answer & 0xffff_ffffn);
    const text = Buffer.from(new Uint8Array(memory.buffer, ptr, len)).toString('utf8');
    free(ptr, len);
    return JSON.parse(text);
  };
  return { raw, call: (op, value) => raw(op, Buffer.from(JSON.stringify(value))), memory };
}

/** What each vector file asks, as {name, op, input, expected}. */
const READERS = {
  *'token.json'({ secret, previous, now, maxAgeSec, sign, cases }) {
    for (const [i, c] of sign.entries())
      for (const form of ['legacy', 'v2']) {
        const input = { secret, payload: c.payload, v2: form === 'v2' };
        yield { name: `sign ${i} ${form}`, op: OP.sign, input, expected: { token: c[form] } };
      }
    for (const c of cases) {
      const input = { secret, previous, token: c.token, now: c.now ?? now, maxAgeSec };
      yield { name: c.name, op: OP.verify, input, expected: c.expect };
    }
  },
  *'targeting.json'({ cases }) {
    for (const { patterns, url, expect } of cases) {
      const input = { patterns, url };
      yield { name: JSON.stringify(input), op: OP.scope, input, expected: expect };
    }
  },
  *'jitter.json'({ cases }) {
    for (const { payload, refreshAfterMs, jitterMs } of cases) {
      const input = { payload, refreshAfterMs };
      yield { name: JSON.stringify(input), op: OP.jitter, input, expected: { jitterMs } };
    }
  },
};

const tally = { passed: 0, failed: 0 };
function check(name, fn) {
  try {
    fn();
    tally.passed += 1;
  } catch (e) {
    tally.failed += 1;
    if (tally.failed <= FAILURES_SHOWN) console.error(`not ok: ${name}\n  ${String(e.message).replaceAll('\n', '\n  ')}`);
  }
}

function runFolder(wasm, label, folder) {
  if (!existsSync(folder)) {
    console.log(`${label} vectors: none here`);
    return 0;
  }
  let ran = 0;
  for (const file of readdirSync(folder).filter((f) => f.endsWith('.json')).sort()) {
    const reader = READERS[file];
    if (!reader) {
      console.log(`${label} vectors: ${file} is not for this module`);
      continue;
    }
    for (const { name, op, input, expected } of reader(JSON.parse(readFileSync(path.join(folder, file), 'utf8')))) {
      check(`${label} ${file}: ${name}`, () => assert.deepEqual(wasm.call(op, input), expected));
      ran += 1;
    }
  }
  console.log(`${label} vectors: ${ran} ran in WebAssembly`);
  return ran;
}

const file = process.argv[2];
if (!file) {
  console.error('usage: node scripts/wasm-tests.mjs MODULE');
  process.exit(2);
}
let wasm;
check('the module loads without imports', () => {
  wasm = load(file);
});
if (wasm) {
  const own = runFolder(wasm, 'own', path.join(ROOT, 'core/vectors'));
  const shared = runFolder(wasm, 'shared', path.join(ROOT, '../shared/vectors'));
  check('at least one vector ran', () => assert.ok(own + shared > 0));
  // A trap would take the whole edge script down, so nothing a caller may send traps.
  for (const [op, text] of [[1, ''], [1, '{'], [1, '[]'], [2, '{}'], [3, '{"patterns":7}'], [4, 'null'], [99, '{}'], [0, '\xff']])
    check(`op ${op} answers ${JSON.stringify(text)}`, () => wasm.raw(op, Buffer.from(text, 'latin1')));
  check('memory does not grow from call to call', () => {
    const round = () => {
      for (let i = 0; i < 2000; i += 1) wasm.call(OP.scope, { patterns: ['/checkout*', '!*x'], url: `https://a.example/checkout/${i}` });
    };
    round();
    const before = wasm.memory.buffer.byteLength;
    round();
    assert.equal(wasm.memory.buffer.byteLength, before);
  });
}
console.log(`wasm: ${tally.passed} passed, ${tally.failed} failed`);
process.exit(tally.failed ? 1 : 0);
