// A WordPress of its own for one test file: Debian's files copied, a private MariaDB without network,
// PHP's built-in server, the plugin installed. The site believes to be https://shop.example.com.

import { execFile, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, until } from '../../../../scripts/blackbox/harness.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
export const HOST = 'shop.example.com';
export const HOME = `https://${HOST}`;
export const PLUGIN = 'queue-manager/queue-manager.php';
const PLUGIN_FOLDER = path.join(HERE, '../../queue-manager');
const PASSWORD = 'a password for one test run';

const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

function start(command, args, options, logFile) {
  const log = fs.openSync(logFile, 'a');
  const child = spawn(command, args, { stdio: ['ignore', log, log], ...options });
  fs.closeSync(log);
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
}

function stopped(child, signal = 'SIGTERM') {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  return ended.then(() => clearTimeout(timer));
}

async function startDatabase(folder) {
  const data = path.join(folder, 'db');
  const socket = path.join(folder, 'db.sock');
  execFileSync('mariadb-install-db', ['--no-defaults', '--user=root', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'], { stdio: 'pipe' });
  const child = start('mariadbd', ['--no-defaults', '--user=root', `--datadir=${data}`, `--socket=${socket}`, `--pid-file=${folder}/db.pid`, '--skip-networking', '--innodb-flush-log-at-trx-commit=0'], {}, path.join(folder, 'db.log'));
  const query = (sql) => execFileSync('mariadb', ['--no-defaults', `--socket=${socket}`, '-uroot', '-e', sql], { stdio: 'pipe' });
  await until(() => query('select 1'), 'a database', 30_000);
  query('create database wp');
  return { child, socket };
}

const config = (socket) => `<?php
define( 'DB_NAME', 'wp' );
define( 'DB_USER', 'root' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', 'localhost:${socket}' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
foreach ( array( 'AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT' ) as $name ) {
	define( $name, hash( 'sha256', $name . 'for one test run' ) );
}
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
define( 'WP_ACCESSIBLE_HOSTS', '127.0.0.1' );
define( 'DISABLE_WP_CRON', true );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'FS_METHOD', 'direct' );
define( 'WP_DEBUG', true );
define( 'WP_DEBUG_DISPLAY', false );
$table_prefix = 'wp_';
if ( ! defined( 'ABSPATH' ) ) {
	define( 'ABSPATH', __DIR__ . '/' );
}
require_once ABSPATH . 'wp-settings.php';
`;

export class Site {
  /** `withoutCurl`: WordPress falls back to plain sockets. */
  static async start({ withoutCurl = false } = {}) {
    const site = new Site();
    site.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qm-wp-'));
    site.root = path.join(site.folder, 'www');
    execFileSync('cp', ['-rL', '/usr/share/wordpress', site.root]);
    fs.rmSync(path.join(site.root, 'wp-content/plugins'), { recursive: true, force: true });
    site.installFiles();
    fs.mkdirSync(path.join(site.root, 'wp-content/mu-plugins'), { recursive: true });
    fs.copyFileSync(path.join(HERE, 'probe.php'), path.join(site.root, 'wp-content/mu-plugins/probe.php'));
    site.database = await startDatabase(site.folder);
    fs.writeFileSync(path.join(site.root, 'wp-config.php'), config(site.database.socket));
    site.logFile = path.join(site.folder, 'php.log');
    site.port = await freePort();
    const ini = ['-d', 'output_buffering=0', '-d', 'log_errors=1', '-d', 'display_errors=0', '-d', 'error_log=', '-d', 'error_reporting=E_ALL', ...(withoutCurl ? ['-d', 'disable_functions=curl_init'] : [])];
    site.web = start('php', [...ini, '-S', `127.0.0.1:${site.port}`, '-t', site.root, path.join(HERE, 'router.php')], { env: { ...process.env, PHP_CLI_SERVER_WORKERS: '4' }, detached: true }, site.logFile);
    await until(() => site.request('GET', '/wp-admin/install.php'), 'a web server', 20_000);
    await site.install();
    return site;
  }

  installFiles() {
    const target = path.join(this.root, 'wp-content/plugins/queue-manager');
    fs.rmSync(target, { recursive: true, force: true });
    fs.cpSync(PLUGIN_FOLDER, target, { recursive: true });
  }

  async install() {
    const form = { weblog_title: 'Shop', user_name: 'boss', admin_password: PASSWORD, admin_password2: PASSWORD, pw_weak: '1', admin_email: 'boss@example.com', blog_public: '0' };
    const done = await this.request('POST', '/wp-admin/install.php?step=2', { form });
    if (done.status !== 200) throw new Error(`WordPress does not install: ${done.status} ${done.text.slice(0, 500)}`);
    this.php(`
      update_option( 'home', '${HOME}' );
      update_option( 'siteurl', '${HOME}' );
      update_option( 'permalink_structure', '/%postname%/' );
      switch_theme( 'twentytwentythree' );
      require_once ABSPATH . 'wp-admin/includes/plugin.php';
      echo is_wp_error( activate_plugin( '${PLUGIN}' ) ) ? 'no' : 'yes';
      flush_rewrite_rules();
      foreach ( array( 'checkout', 'about', 'cart' ) as $slug ) {
        wp_insert_post( array( 'post_type' => 'page', 'post_status' => 'publish', 'post_name' => $slug, 'post_title' => $slug, 'post_content' => 'SECRET of ' . $slug ) );
      }
      wp_create_user( 'editor', '${PASSWORD}', 'editor@example.com' );
      get_user_by( 'login', 'editor' )->set_role( 'editor' );`);
    this.pages = JSON.parse(this.php("echo json_encode( array_column( get_pages(), 'ID', 'post_name' ) );"));
  }

  /** Runs PHP inside this WordPress and gives what it prints. */
  php(code) {
    return execFileSync('php', this.phpArguments(code), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** The same, for code that asks a server of the test. */
  async phpThatAsks(code) {
    const { error, stdout, stderr } = await run('php', this.phpArguments(code), { encoding: 'utf8' });
    if (error) throw new Error(`${error.message}\n${stderr}`);
    return stdout;
  }

  phpArguments(code) {
    const prologue = `$_SERVER['HTTP_HOST'] = '${HOST}'; $_SERVER['REQUEST_URI'] = '/'; $_SERVER['HTTPS'] = 'on'; $_SERVER['REQUEST_METHOD'] = 'GET'; $_SERVER['REMOTE_ADDR'] = '127.0.0.1';`;
    return ['-d', 'display_errors=stderr', '-r', `${prologue} require '${this.root}/wp-load.php'; ${code}`];
  }

  /** Lets the other plugin of the test site behave in some way; without an argument, well. */
  behave(how = {}) {
    fs.writeFileSync(path.join(this.root, 'behave.json'), JSON.stringify(how));
  }

  get log() {
    return fs.readFileSync(this.logFile, 'utf8');
  }

  /** One request; redirects are not followed, `headers` may be a list of pairs. */
  request(method, target, { headers = {}, form, address = '198.51.100.7', https = true } = {}) {
    const own = { Host: HOST, 'X-Test-Address': address, ...(https ? { 'X-Test-Https': 'on' } : {}) };
    const body = form && new URLSearchParams(form).toString();
    if (body) Object.assign(own, { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': Buffer.byteLength(body) });
    const all = Array.isArray(headers) ? [...Object.entries(own).flat(), ...headers.flat()] : { ...own, ...headers };
    return new Promise((resolve, reject) => {
      const began = Date.now();
      const request = http.request({ host: '127.0.0.1', port: this.port, method, path: target, headers: all, agent: false, setHost: false });
      request.setTimeout(30_000, () => request.destroy(new Error(`no answer: ${method} ${target}`)));
      request.on('error', reject).on('response', (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part)).on('error', reject);
        response.on('end', () => {
          const cookies = (response.headers['set-cookie'] ?? []).map((line) => ({ line, name: line.split('=')[0], value: line.split(';')[0].slice(line.indexOf('=') + 1) }));
          resolve({ status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString('utf8'), cookies, ms: Date.now() - began });
        });
      });
      request.end(body);
    });
  }

  get(target, options) {
    return this.request('GET', target, options);
  }

  async login(user = 'boss') {
    const form = { log: user, pwd: PASSWORD, 'wp-submit': 'Log In', testcookie: '1' };
    const answer = await this.request('POST', '/wp-login.php', { form, headers: { Cookie: 'wordpress_test_cookie=WP%20Cookie%20check' } });
    if (answer.status !== 302) throw new Error(`no login: ${answer.status}`);
    return answer.cookies.map(({ line }) => line.split(';')[0]).join('; ');
  }

  async settingsPage(cookie) {
    const page = await this.get('/wp-admin/options-general.php?page=queue-manager', { headers: { Cookie: cookie } });
    return {
      ...page,
      nonce: /name="_wpnonce" value="(\w+)"/.exec(page.text)?.[1],
      state: /class="notice notice-(\w+) inline" id="queue-manager-state"/.exec(page.text)?.[1],
      points: [...page.text.matchAll(/<li data-check="(\w*)" data-status="(\w+)">/g)].map(([, id, status]) => `${id}:${status}`),
    };
  }

  /** Saves the settings as the site's owner does, on the page. */
  async save(fields) {
    this.cookie ??= await this.login();
    const { nonce } = await this.settingsPage(this.cookie);
    const form = { action: 'queue_manager_save', _wpnonce: nonce, rules: '', key: '', ...fields };
    const answer = await this.request('POST', '/wp-admin/admin-post.php', { form, headers: { Cookie: this.cookie } });
    if (answer.status !== 302) throw new Error(`not saved: ${answer.status} ${answer.text.slice(0, 300)}`);
    return this.settingsPage(this.cookie);
  }

  async stop() {
    if (this.web) {
      try {
        process.kill(-this.web.pid, 'SIGTERM'); // its workers too: a group of its own
      } catch {
        // it has ended
      }
      await stopped(this.web);
    }
    if (this.database) await stopped(this.database.child);
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A queue server that does as it is told: `answer(request, response, query)` plays the check. */
export async function fakeQueue() {
  const fake = { checks: [], answer: null, verify: { ok: true, checks: [{ id: 'room_exists', status: 'pass', title: 'there' }] }, files: {} };
  const server = http.createServer((request, response) => {
    const url = new URL(request.url, 'http://queue');
    if (url.pathname === '/api/v1/verify') {
      fake.verified = { query: Object.fromEntries(url.searchParams), authorization: request.headers.authorization };
      if (typeof fake.verify === 'function') return fake.verify(request, response);
      response.setHeader('Content-Type', 'application/json');
      return response.end(JSON.stringify(fake.verify));
    }
    if (url.pathname === '/api/v1/check') {
      fake.checks.push({ query: url.searchParams, headers: request.headers, target: request.url });
      return fake.answer(request, response, url.searchParams);
    }
    const file = fake.files[url.pathname];
    response.statusCode = file === undefined ? 404 : 200;
    return response.end(file);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  fake.url = `http://127.0.0.1:${server.address().port}`;
  fake.json = (status, body) => (request, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
  fake.queue = fake.json(200, { action: 'queue', reason: 'no_token', waitingRoomUrl: '/w/checkout' });
  fake.pass = fake.json(200, { action: 'pass', reason: 'session' });
  fake.stop = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return fake;
}

const run = (command, args, options) => new Promise((resolve) => execFile(command, args, options, (error, stdout, stderr) => resolve({ error, stdout, stderr })));
