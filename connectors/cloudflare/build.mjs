// Builds latest.js: `node build.mjs MODULE OUT`. MODULE is the core with its C ABI as WebAssembly;
// Workers do not compile WebAssembly from bytes, so it is translated to JavaScript (wasm2js).
// The same input gives the same bytes.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { transformSync } from 'esbuild';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const GZIP_BYTES_MAX = 250 * 1024;
const FEATURES = ['bulk-memory', 'sign-ext', 'nontrapping-float-to-int', 'mutable-globals', 'reference-types', 'multivalue'];

const [module, out] = process.argv.slice(2);
if (!module || !out) {
  console.error('usage: node build.mjs MODULE OUT');
  process.exit(2);
}
const run = (tool, ...args) =>
  execFileSync(process.execPath, [path.join(HERE, 'node_modules/binaryen/bin', tool), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });

const work = mkdtempSync(path.join(tmpdir(), 'qm-edge-'));
try {
  const small = path.join(work, 'core.wasm');
  const script = path.join(work, 'core.js');
  run('wasm-opt', '-Oz', '--strip-debug', '--strip-producers', ...FEATURES.map((f) => `--enable-${f}`), module, '-o', small);
  run('wasm2js', '-O2', ...FEATURES.map((f) => `--enable-${f}`), small, '-o', script);
  const text = readFileSync(script, 'utf8');
  const start = text.indexOf("import * as env from 'env';");
  const end = text.indexOf('var retasmFunc = asmFunc(');
  if (start < 0 || end < 0) throw new Error('wasm2js writes another shape of module');
  const body = text.slice(0, start) + text.slice(start + "import * as env from 'env';".length, end);
  // A function of its own, so that a fresh instance can be had after a fault.
  const factory = `function instantiate(env) {${body}return asmFunc({ env });}`;
  const { code } = transformSync(`${factory}\nexport { instantiate };`, { minify: true, format: 'esm', target: 'es2022', legalComments: 'none' });
  const core = code.replace(/export\s*\{\s*(\w+) as instantiate\s*\};?\s*$/, 'const instantiate=$1;');
  if (core === code) throw new Error('the minifier writes another shape of export');
  const { version } = JSON.parse(readFileSync(path.join(HERE, 'project/package.json'), 'utf8'));
  const glue = readFileSync(path.join(HERE, 'src/glue.js'), 'utf8').replace('@VERSION@', version);
  const all = `// qm-edge ${version}\n${glue}\n// ---- the core, compiled ------------------------------------------------------------------------\n\n${core.trim()}\n`;
  writeFileSync(out, all);
  const zipped = gzipSync(all, { level: 9 }).length;
  console.log(`single file: ${all.length} bytes, ${zipped} gzip (at most ${GZIP_BYTES_MAX})`);
  if (zipped > GZIP_BYTES_MAX) throw new Error('the single file is too large');
} finally {
  rmSync(work, { recursive: true, force: true });
}
