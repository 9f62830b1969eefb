// The settings page, the trusted proxy settings, the language and the end of the plugin.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { PUBLIC_API_KEY, freePort, startServer } from '../../../../scripts/blackbox/harness.mjs';
import { HOME, HOST, PLUGIN, Site, fakeQueue } from './wordpress.mjs';

let fake;
let server;
let site;
let good;
before(async () => {
  [server, site, fake] = await Promise.all([startServer(), Site.start(), fakeQueue()]);
  good = { server: server.url, room: await server.room(), key: PUBLIC_API_KEY, is_wanted: '1' };
});
after(async () => {
  await site?.stop();
  await server?.stop();
  await fake?.stop();
});
beforeEach(() => {
  site.behave();
  fake.checks = [];
  fake.answer = fake.queue;
});

const isOpen = async () => (await site.get('/checkout/')).status === 200;
const stored = (name) => JSON.parse(site.php(`echo json_encode( get_option( 'queue_manager_${name}' ) );`));

test('nothing is queued before anything is set', async () => {
  assert.ok(await isOpen());
  const page = await site.save({});
  assert.deepEqual([page.state, page.points], ['info', ['server:fail', 'room:fail', 'public_key:fail']]);
});

test('saved but not armed until the verification passes', async () => {
  const closed = await freePort();
  const homeless = await server.room({ targetUrl: null });
  for (const [what, change, point] of [
    ['a room with a typo', { room: 'chekout' }, 'room_exists:fail'],
    ['a room with another case', { room: good.room.toUpperCase() }, 'room_exists:fail'],
    ['a wrong key', { key: 'pk_wrong' }, 'public_key:fail'],
    ['a server that is not there', { server: `http://127.0.0.1:${closed}` }, 'server:fail'],
    ['a server that is something else', { server: fake.url }, 'server:fail'],
    ['a room with nowhere to go', { room: homeless }, 'return_policy:fail'],
    ['a site the room does not know', { room: await server.room({ targetUrl: 'https://other.example/' }) }, 'tag_origin'],
  ]) {
    fake.verify = 'not what a report looks like';
    const page = await site.save({ ...good, ...change });
    assert.equal(page.state, 'error', what);
    assert.ok(page.points.some((found) => found.startsWith(point)), `${what}: ${page.points}`);
    assert.ok(await isOpen(), what);
    assert.equal(stored('settings').room, change.room ?? good.room, 'the settings are kept');
    assert.match((await site.get('/wp-admin/index.php', { headers: { Cookie: site.cookie } })).text, /visitors are not queued, because/);
  }
  const page = await site.save(good);
  assert.deepEqual([page.state, page.points.filter((point) => point.endsWith('fail'))], ['success', []]);
  assert.ok(!(await isOpen()));
});

test('a report that does not come, and reports that are none', async () => {
  for (const verify of [
    () => {},
    (request, response) => response.writeHead(500).end('{"ok":true,"checks":[{"status":"pass"}]}'),
    (request, response) => response.writeHead(302, { Location: `${server.url}/api/v1/verify?roomId=${good.room}` }).end(),
    { ok: 'yes', checks: [{ id: 'x', status: 'pass' }] },
    { ok: true },
    { ok: true, checks: [] },
    { ok: true, checks: [{ id: 'x', status: 'fail', title: 'inconsistent' }] },
    { ok: true, checks: 'pass' },
    null,
  ]) {
    fake.verify = verify;
    const page = await site.save({ ...good, server: fake.url });
    assert.equal(page.state, 'error', JSON.stringify(verify));
    assert.ok(await isOpen());
  }
});

test('what is verified: room, site, key, connector and version; a warning does not block', async () => {
  fake.verify = { ok: true, checks: [{ id: 'room_state', status: 'warn', title: 'the room is <b>paused</b>', fix: '"resume" it' }] };
  const page = await site.save({ ...good, server: `${fake.url}/` });
  assert.deepEqual([page.state, page.points], ['success', ['room_state:warn']]);
  assert.deepEqual(fake.verified.query, { roomId: good.room, origin: HOME, connector: 'wordpress', version: '1.2.1' });
  assert.equal(fake.verified.authorization, `Bearer ${PUBLIC_API_KEY}`);
  assert.ok(page.text.includes('the room is &lt;b&gt;paused&lt;/b&gt;'));
  assert.ok(!page.text.includes(PUBLIC_API_KEY), 'the key is not shown again');
});

test('every save verifies again, and an empty key field keeps the key', async () => {
  await site.save(good);
  fake.verify = { ok: true, checks: [{ id: 'x', status: 'pass' }] };
  for (let i = 0; i < 2; i += 1) {
    fake.verified = undefined;
    await site.save({ ...good, server: fake.url, key: '' });
    assert.equal(fake.verified.authorization, `Bearer ${PUBLIC_API_KEY}`);
  }
});

test('unticked means off', async () => {
  await site.save(good);
  assert.ok(!(await isOpen()));
  const { is_wanted: _, ...off } = good;
  assert.equal((await site.save(off)).state, 'info');
  assert.ok(await isOpen());
});

test('fields that cannot be used are named', async () => {
  for (const [change, said] of [
    [{ server: 'queue.example.com' }, /must be an origin/],
    [{ server: 'https://queue.example.com/x' }, /must be an origin/],
    [{ server: 'javascript:alert(1)' }, /must be an origin/],
    [{ room: 'check out' }, /1 to 64 letters/],
    [{ room: 'a&connector=x' }, /1 to 64 letters/],
    [{ room: 'r'.repeat(65) }, /1 to 64 letters/],
    [{ key: 'a b' }, /contains characters/],
    [{ rules: '/a#b' }, /must not contain #/],
    [{ rules: 'checkout' }, /starts with \//],
    [{ rules: Array.from({ length: 26 }, (__, i) => `/${i}`).join('\n') }, /at most 25 rules/],
  ]) {
    const page = await site.save({ ...good, ...change });
    assert.match(page.text, said, JSON.stringify(change));
  }
  await site.save({ ...good, rules: '/kept*' });
  await site.save({ ...good, rules: 'unusable' });
  assert.deepEqual(stored('settings').rules, ['/kept*']);
});

test('only the owner saves, and only from the page', async () => {
  await site.save(good);
  const before = stored('settings');
  const form = { action: 'queue_manager_save', server: fake.url, room: 'x', key: 'y' };
  const nonce = (await site.settingsPage(site.cookie)).nonce;
  const editor = await site.login('editor');
  for (const [what, headers, more] of [
    ['nobody', {}, { _wpnonce: nonce }],
    ['an editor', { Cookie: editor }, { _wpnonce: nonce }],
    ['a forged form', { Cookie: site.cookie }, {}],
    ['a forged form', { Cookie: site.cookie }, { _wpnonce: 'abcdef1234' }],
  ]) {
    await site.request('POST', '/wp-admin/admin-post.php', { form: { ...form, ...more }, headers });
    assert.deepEqual(stored('settings'), before, what);
  }
  assert.notEqual((await site.settingsPage(editor)).status, 200);
});

test('the key may stand in wp-config.php', async () => {
  site.behave({ define: { QM_PUBLIC_API_KEY: ` ${PUBLIC_API_KEY} ` } });
  const page = await site.save({ ...good, key: 'pk_wrong' });
  assert.equal(page.state, 'success');
  assert.match(page.text, /Set by QM_PUBLIC_API_KEY/);
  assert.ok(!(await isOpen()));
});

test('whose address is vouched for', async () => {
  fake.verify = { ok: true, checks: [{ id: 'x', status: 'pass' }] };
  await site.save({ ...good, server: fake.url });
  const all = { 'X-Forwarded-For': '198.51.100.1, 203.0.113.1, 203.0.113.2:80', 'CF-Connecting-IP': '203.0.113.3', 'True-Client-IP': '203.0.113.4', 'X-Real-IP': '203.0.113.5' };
  for (const [trusted, headers, expected] of [
    [undefined, all, '192.0.2.1'],
    [1, all, '203.0.113.2'],
    ['2', all, '203.0.113.1'],
    [4, all, '192.0.2.1'],
    [true, all, '203.0.113.3'],
    [true, { 'X-Forwarded-For': '203.0.113.9' }, '203.0.113.9'],
    ['cf-connecting-ip', all, '203.0.113.3'],
    ['X-Forwarded-For', all, '192.0.2.1'],
    ['Nope', all, '192.0.2.1'],
  ]) {
    site.behave(trusted === undefined ? {} : { define: { QM_TRUSTED_PROXY: trusted } });
    await site.get('/checkout/', { headers, address: '192.0.2.1' });
    assert.equal(fake.checks.at(-1).query.get('ip'), expected, JSON.stringify(trusted));
  }
  for (const [filters, expected] of [[['203.0.113.50'], '203.0.113.50'], [[''], '203.0.113.2'], [['x'], '203.0.113.2'], [[null], '203.0.113.2'], [['x', '::ffff:203.0.113.51'], '203.0.113.51']]) {
    site.behave({ define: { QM_TRUSTED_PROXY: 1 }, client_ip: filters });
    await site.get('/checkout/', { headers: all, address: '192.0.2.1' });
    assert.equal(fake.checks.at(-1).query.get('ip'), expected, JSON.stringify(filters));
  }
});

test('a proxy that nobody configured is said once', async () => {
  fake.verify = { ok: true, checks: [{ id: 'x', status: 'pass' }] };
  await site.save({ ...good, server: fake.url });
  const said = () => site.log.split('but neither QM_TRUSTED_PROXY').length - 1;
  const before = said();
  const headers = { 'X-Forwarded-For': '203.0.113.1' };
  site.behave({ define: { QM_TRUSTED_PROXY: 0 } });
  await site.get('/checkout/', { headers });
  site.behave({ client_ip: ['203.0.113.1'] });
  await site.get('/checkout/', { headers });
  assert.equal(said(), before);
  site.behave();
  for (let i = 0; i < 3; i += 1) await site.get('/checkout/', { headers });
  assert.equal(said(), before + 1);
  assert.match((await site.get('/wp-admin/index.php', { headers: { Cookie: site.cookie } })).text, /seems to stand behind a proxy/);
});

test('a visitor without an address', async () => {
  fake.verify = { ok: true, checks: [{ id: 'x', status: 'pass' }] };
  await site.save({ ...good, server: fake.url });
  const answer = await site.get('/checkout/', { address: 'unix:' });
  assert.deepEqual([answer.status, answer.headers['x-qm-failover'], fake.checks.length], [200, 'unreachable', 0]);
});

test('the page speaks Thai', async () => {
  site.php("update_user_meta( get_user_by( 'login', 'boss' )->ID, 'locale', 'th' );");
  const page = await site.save(good);
  assert.match(page.text, /บันทึกและตรวจสอบ/);
  assert.match(page.text, /ให้ผู้เข้าชมเว็บไซต์นี้ต่อคิว/);
  site.php("update_user_meta( get_user_by( 'login', 'boss' )->ID, 'locale', '' );");
});

test('a second site in a sub-folder has settings of its own address', async () => {
  await site.save(good);
  site.php(`update_option( 'home', '${HOME}/shop' );`);
  const answer = await site.get('/shop/checkout/?a=1');
  assert.equal(new URL(answer.headers.location).searchParams.get('qm_return'), `${HOME}/shop/checkout/?a=1`);
  site.php(`update_option( 'home', '${HOME}' );`);
});

test('an uninstalled plugin leaves nothing behind', async () => {
  await site.save(good);
  site.php("update_option( 'queue_manager_proxy_seen', 1 );");
  const left = () => JSON.parse(site.php("global $wpdb; echo json_encode( $wpdb->get_col( \"select option_name from {$wpdb->options} where option_name like '%queue_manager%'\" ) );"));
  assert.ok(left().length >= 3);
  site.php(`require_once ABSPATH . 'wp-admin/includes/plugin.php'; require_once ABSPATH . 'wp-admin/includes/file.php'; deactivate_plugins( '${PLUGIN}' );`);
  assert.ok(await isOpen());
  site.php(`require_once ABSPATH . 'wp-admin/includes/plugin.php'; require_once ABSPATH . 'wp-admin/includes/file.php'; WP_Filesystem(); delete_plugins( array( '${PLUGIN}' ) );`);
  assert.ok(!fs.existsSync(path.join(site.root, 'wp-content/plugins/queue-manager')));
  assert.deepEqual(left(), []);
  assert.deepEqual(site.log.split('\n').filter((line) => /PHP .*plugins\/queue-manager/.test(line)), []);
  assert.equal(HOST, new URL(HOME).host);
});
