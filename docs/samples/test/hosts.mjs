// Starts one sample in its own runtime, in front of a page that says SECRET.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, send, until } from '../../../scripts/blackbox/harness.mjs';
import { createGate } from '../gate.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const SAMPLES = path.join(HERE, '..');
export const SITE = 'https://shop.example.com';

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

function child(command, args, settings, options = {}) {
  const env = { ...process.env, QM_SERVER: settings.server, QM_ROOM: settings.room, QM_PUBLIC_API_KEY: settings.key, QM_SITE: SITE };
  const run = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env, ...options });
  const host = { log: '', run };
  children.add(run);
  run.stdout.on('data', (part) => (host.log += part));
  run.stderr.on('data', (part) => (host.log += part));
  const ended = new Promise((resolve) => run.once('close', resolve));
  host.stop = async () => {
    run.kill('SIGTERM');
    const timer = setTimeout(() => run.kill('SIGKILL'), 3000);
    await ended;
    clearTimeout(timer);
    children.delete(run);
  };
  return host;
}

/** Waits until the sample answers; one that does not is stopped and says why. */
async function answers(host) {
  try {
    await until(() => send(host.port, 'GET', '/ready').then(() => true), 'the sample', 10_000);
  } catch (error) {
    await host.stop();
    throw new Error(`${error.message}\n${host.log}`);
  }
}

async function listening(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server.address().port;
}

const closed = (server) => new Promise((resolve) => {
  server.closeAllConnections();
  server.close(resolve);
});

async function php(settings) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qm-php-'));
  const page = path.join(folder, 'page.php');
  fs.writeFileSync(page, `<?php\nrequire '${SAMPLES}/qm_gate.php';\nqm_gate(getenv('QM_SERVER'), getenv('QM_ROOM'), getenv('QM_PUBLIC_API_KEY')${settings.withoutSite ? '' : ", getenv('QM_SITE')"});\n?>SECRET`);
  const port = await freePort();
  const host = child('php', ['-d', 'display_errors=1', '-d', 'output_buffering=0', '-S', `127.0.0.1:${port}`, page], settings);
  host.port = port;
  await answers(host);
  const { stop } = host;
  host.stop = async () => {
    await stop();
    fs.rmSync(folder, { recursive: true });
  };
  return host;
}

async function node(settings) {
  const host = { log: '' };
  const gate = createGate({ ...settings, site: SITE, log: (line) => (host.log += `${line}\n`) });
  const server = http.createServer((req, res) => {
    gate(req, res, () => res.end('SECRET')).catch((error) => {
      res.statusCode = 500;
      res.end(String(error));
    });
  });
  host.port = await listening(server);
  host.stop = () => closed(server);
  return host;
}

async function python(settings) {
  const host = child('python3', [path.join(HERE, 'asgi_runner.py')], settings);
  host.port = Number(await until(() => /^\d+\n/.exec(host.log)?.[0], 'the runner', 10_000));
  return host;
}

async function nginx(settings) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qm-nginx-'));
  const upstream = http.createServer((req, res) => {
    res.setHeader('X-Upstream-Url', req.url);
    res.setHeader('Cache-Control', 'public, max-age=60');
    res.end('SECRET');
  });
  const behind = await listening(upstream);
  const port = await freePort();
  const location = fs.readFileSync(path.join(SAMPLES, 'gate.conf'), 'utf8').replace('location /checkout {', 'location / {').replace('http://upstream', `http://127.0.0.1:${behind}`);
  fs.writeFileSync(path.join(folder, 'nginx.conf'), `
load_module ${process.env.NGINX_JS_MODULE ?? '/usr/lib/nginx/modules/ngx_http_js_module.so'};
env QM_SERVER; env QM_ROOM; env QM_PUBLIC_API_KEY; env QM_SITE;
daemon off; master_process off; pid ${folder}/pid; error_log stderr error;
events {}
http {
  js_path ${SAMPLES};
  js_import gate from gate.js;
  js_var $qm_failover; js_var $qm_cookie; js_var $qm_cache;
  js_fetch_timeout 2s;
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  large_client_header_buffers 8 32k;
  server {
    listen 127.0.0.1:${port};
${location}
  }
}
`);
  const host = child('nginx', ['-p', folder, '-e', 'stderr', '-c', path.join(folder, 'nginx.conf')], settings);
  host.port = port;
  await answers(host);
  const { stop } = host;
  host.stop = async () => {
    await stop();
    await closed(upstream);
    fs.rmSync(folder, { recursive: true });
  };
  return host;
}

export const hosts = { php, node, python, nginx };
