// What the Worker's tests share: real workerd (through miniflare), and around it one HTTP proxy that
// plays the internet: requests for the queue's host go to `queue`, all others to `site`.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Log, LogLevel, Miniflare } from 'miniflare';

const HERE = path.dirname(fileURLToPath(import.meta.url));
export const ROOT = path.resolve(HERE, '../../..');
const DIST = process.env.QM_EDGE_DIST ?? path.join(process.env.CARGO_TARGET_DIR ?? path.join(ROOT, 'target'), 'dist/cloudflare');
export const QUEUE = 'https://queue.example.com';
export const SHOP = 'https://shop.example.com';
export const KEY = 'pk_test_1';
const PATIENCE_MS = 15_000;

const built = existsSync(DIST) ? readdirSync(DIST) : [];
export const FILE = built.filter((name) => /^qm-edge-[\d.]+\.js$/.test(name)).map((name) => path.join(DIST, name))[0];
export const PROJECT = built.filter((name) => name.endsWith('.tgz')).map((name) => path.join(DIST, name, 'qm-edge'))[0];

/** The two forms of the connector, as miniflare's options. */
export const FORMS = {
  file: () => ({ modules: [{ type: 'ESModule', path: 'latest.js', contents: readFileSync(FILE, 'utf8') }] }),
  worker: () => {
    const folder = path.join(DIST, 'worker');
    const names = readdirSync(folder).sort((a, b) => Number(b === 'index.js') - Number(a === 'index.js'));
    const kind = { '.js': 'ESModule', '.wasm': 'CompiledWasm' };
    return { modules: names.map((name) => ({ type: kind[path.extname(name)], path: name, contents: readFileSync(path.join(folder, name)) })) };
  },
};
/** Those that are built here; one at least is. */
export const BUILT = [FILE && 'file', existsSync(path.join(DIST, 'worker')) && 'worker'].filter(Boolean);
if (BUILT.length === 0) throw new Error(`nothing is built in ${DIST}: scripts/edge-tests builds it`);

export async function until(ask, what) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what} did not come true`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const json = (response, status, body, headers = {}) => {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
};

class Lines extends Log {
  constructor() {
    super(LogLevel.NONE);
  }
}

export class World {
  /** `queue(request, response, url)` answers for the queue server, `site` for the shop. */
  static async start({ form, vars = {}, queue, site, wrap }) {
    const world = new World();
    world.queue = queue ?? ((_, response) => json(response, 500, {}));
    world.site = site ?? ((request, response) => json(response, 200, { site: true, headers: request.headers, url: request.url }));
    world.targeting = (response) => json(response, 500, {});
    world.verified = [];
    world.logged = '';
    world.proxy = http.createServer((request, response) => world.route(request, response));
    world.proxy.on('upgrade', (request, socket) => world.upgrade(request, socket));
    await new Promise((resolve) => world.proxy.listen(0, '127.0.0.1', resolve));
    const bindings = { QM_SERVER: QUEUE, QM_ROOM: 'checkout', QM_PUBLIC_API_KEY: KEY, ...vars };
    for (const [name, value] of Object.entries(bindings)) if (value === undefined) delete bindings[name];
    const { modules } = FORMS[form]();
    // A module of the test around the Worker, which it imports as `DOOR`.
    if (wrap) modules.unshift({ type: 'ESModule', path: 'main.js', contents: wrap.replace('DOOR', `./${modules[0].path}`) });
    world.miniflare = new Miniflare({
      modules,
      compatibilityDate: '2025-01-01',
      bindings,
      log: new Lines(),
      handleRuntimeStdio: (out, err) => {
        for (const stream of [out, err])
          stream.on('data', (part) => {
            world.logged += part;
          });
      },
      outboundService: { external: { address: `127.0.0.1:${world.proxy.address().port}`, http: { style: 'proxy' } } },
    });
    world.at = await world.miniflare.ready;
    return world;
  }

  route(request, response) {
    // Proxy style is the whole address, host style the path with a Host header.
    const url = new URL(request.url, `https://${request.headers.host}`);
    if (url.host !== new URL(QUEUE).host || !url.pathname.startsWith('/api/')) return this.site(request, response, url);
    if (url.pathname === '/api/v1/targeting') return this.targeting(response, request);
    if (url.pathname === '/api/v1/verify') {
      this.verified.push(url);
      return this.verify ? this.verify(response, request) : json(response, 200, { ok: true, checks: [] });
    }
    return this.queue(request, response, url);
  }

  upgrade(request, socket) {
    socket.end('HTTP/1.1 500 No\r\n\r\n');
  }

  /** One visit, byte for byte as given; no header is added but the visitor's address. */
  visit(url, { method = 'GET', headers = {}, address = '203.0.113.7', body, read = true } = {}) {
    const all = { Host: this.at.host, 'MF-Original-URL': url, ...headers };
    if (address !== null) all['CF-Connecting-IP'] = address;
    return new Promise((resolve, reject) => {
      const request = http.request({ host: this.at.hostname, port: this.at.port, method, path: '/', headers: all, agent: false });
      request.setTimeout(PATIENCE_MS, () => request.destroy(new Error(`no answer: ${method} ${url}`)));
      request.on('error', reject).on('response', (response) => {
        if (!read) return resolve({ status: response.statusCode, headers: response.headers, response });
        const parts = [];
        response.on('error', reject).on('data', (d) => parts.push(d));
        response.on('end', () => {
          const bytes = Buffer.concat(parts);
          resolve({ status: response.statusCode, headers: response.headers, bytes, text: bytes.toString(), cookies: response.headers['set-cookie'] ?? [] });
        });
      });
      if (body?.pipe) body.pipe(request);
      else request.end(body);
    });
  }

  async stop() {
    await this.miniflare.dispose();
    this.proxy.closeAllConnections();
    await new Promise((resolve) => this.proxy.close(resolve));
  }
}
