// Updates: from the configured queue server, checked before they are installed, and from nowhere else.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { PLUGIN, Site, fakeQueue } from './wordpress.mjs';

const HOSTILE = { slug: 'queue-manager', plugin: PLUGIN, new_version: '9.9.9', package: 'http://127.0.0.1:9/evil.zip', url: 'https://evil.example/' };
let queue;
let site;
before(async () => {
  [queue, site] = await Promise.all([fakeQueue(), Site.start()]);
  await site.save({ server: queue.url, room: 'checkout', key: 'pk_test_1', is_wanted: '1' });
});
after(async () => {
  await site?.stop();
  await queue?.stop();
});
beforeEach(() => {
  site.behave();
  site.installFiles();
  queue.files = {};
  // WordPress switches a plugin off before it replaces it.
  site.php(`require_once ABSPATH . 'wp-admin/includes/plugin.php'; activate_plugin( '${PLUGIN}' );`);
});

/** The plugin as another version, packed. */
function pack(version) {
  const folder = fs.mkdtempSync(path.join(site.folder, 'zip-'));
  fs.cpSync(path.join(site.root, 'wp-content/plugins/queue-manager'), path.join(folder, 'queue-manager'), { recursive: true });
  const main = path.join(folder, PLUGIN);
  fs.writeFileSync(main, fs.readFileSync(main, 'utf8').replaceAll('1.2.1', version));
  execFileSync('zip', ['-qr', 'plugin.zip', 'queue-manager'], { cwd: folder });
  return fs.readFileSync(path.join(folder, 'plugin.zip'));
}

function offer(version, bytes, more = {}) {
  const file = `/connectors/wordpress/queue-manager-${version}.zip`;
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const document = { name: 'Queue Manager', slug: 'queue-manager', version, requires: '5.8', tested: '6.1', requires_php: '7.4', download_url: queue.url + file, sha256, last_updated: '2026-01-01', sections: { description: 'A <b>room</b>.<script>alert(1)</script>' }, ...more };
  queue.files['/api/connectors/wordpress/update'] = JSON.stringify(document);
  queue.files[file] = bytes;
}

/** Asks as WordPress's update cycle does; gives the version offered, or ''. */
const look = () => site.phpThatAsks(`
  delete_site_transient( 'update_plugins' );
  wp_update_plugins();
  $list = get_site_transient( 'update_plugins' );
  echo isset( $list->response['${PLUGIN}'] ) ? $list->response['${PLUGIN}']->new_version : '';`);
const install = () => site.phpThatAsks(`
  require_once ABSPATH . 'wp-admin/includes/admin.php';
  require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
  $skin = new Automatic_Upgrader_Skin();
  $done = ( new Plugin_Upgrader( $skin ) )->upgrade( '${PLUGIN}' );
  echo is_wp_error( $done ) ? $done->get_error_message() : ( true === $done ? 'installed' : implode( ' ', $skin->get_upgrade_messages() ) );`);
const version = () => /^ \* Version: +(\S+)$/m.exec(fs.readFileSync(path.join(site.root, 'wp-content/plugins', PLUGIN), 'utf8'))[1];

test('a newer version is offered and installed', async () => {
  offer('1.3.0', pack('1.3.0'));
  assert.equal(await look(), '1.3.0');
  assert.match(await install(), /installed/);
  assert.equal(version(), '1.3.0');
});

test('older, equal, unusable and missing announcements offer nothing', async () => {
  const bytes = pack('1.3.0');
  offer('1.2.1', bytes);
  assert.equal(await look(), '');
  offer('1.2.0', bytes);
  assert.equal(await look(), '');
  offer('1.3.0', bytes, { download_url: 'https://evil.example/x.zip' });
  assert.equal(await look(), '');
  offer('1.3.0', bytes, { sha256: '' });
  assert.equal(await look(), '');
  queue.files['/api/connectors/wordpress/update'] = '<html>';
  assert.equal(await look(), '');
  queue.files = {};
  assert.equal(await look(), '');
});

test('a package with another digest is not installed', async () => {
  offer('1.3.0', pack('1.3.0'), { sha256: 'a'.repeat(64) });
  assert.equal(await look(), '1.3.0');
  assert.match(await install(), /not the one that the queue server announced/);
  assert.equal(version(), '1.2.1');
});

test('the public directory cannot replace the plugin', async () => {
  site.behave({ directory: { plugins: { [PLUGIN]: HOSTILE }, translations: [], no_update: {} } });
  assert.equal(await look(), '');
  offer('1.3.0', pack('1.3.0'));
  assert.notEqual(await look(), '9.9.9');
  site.php(`
    $list = new stdClass(); $list->last_checked = time(); $list->checked = array(); $list->response = array( '${PLUGIN}' => (object) json_decode( '${JSON.stringify(HOSTILE)}' ) );
    remove_all_filters( 'pre_set_site_transient_update_plugins' ); set_site_transient( 'update_plugins', $list );`);
  assert.doesNotMatch(await install(), /^installed/);
  assert.equal(version(), '1.2.1');
});

test('the server that was configured when the update was found still counts', async () => {
  offer('1.3.0', pack('1.3.0'));
  assert.equal(await look(), '1.3.0');
  await site.save({ server: 'http://127.0.0.1:9', room: 'checkout', key: 'pk_test_1' });
  assert.doesNotMatch(await install(), /^installed/);
  assert.equal(version(), '1.2.1');
  await site.save({ server: queue.url, room: 'checkout', key: 'pk_test_1', is_wanted: '1' });
});

test('details come from the queue server, made harmless', async () => {
  offer('1.3.0', pack('1.3.0'));
  const details = async () => JSON.parse(await site.phpThatAsks(`
    require_once ABSPATH . 'wp-admin/includes/plugin-install.php';
    $found = plugins_api( 'plugin_information', array( 'slug' => 'queue-manager' ) );
    echo json_encode( is_wp_error( $found ) ? $found->get_error_message() : $found );`));
  const found = await details();
  assert.deepEqual([found.version, found.sections.description], ['1.3.0', 'A <b>room</b>.alert(1)']);
  queue.files = {};
  assert.match(await details(), /gives no details now/);
});
