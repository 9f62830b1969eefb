// The Tag Manager template: its file, its fields, its permissions and what its code does.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import vm from 'node:vm';
import { startServer } from '../../../scripts/blackbox/harness.mjs';
import { SITE, open, tag } from '../../../snippet/test/fake-browser.mjs';
import { FILE, Run, fits, forbidden, readPermissions, readTemplate } from './sandbox.mjs';

const template = readTemplate();
const GOOD = { server: 'https://queue.example.com', room: 'checkout' };
const SNIPPET = 'https://queue.example.com/snippet/qm.js?server=https%3A%2F%2Fqueue.example.com&room=checkout';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

test('the file has the sections that Tag Manager imports, and one version', () => {
  assert.deepEqual(template.order, ['TERMS_OF_SERVICE', 'INFO', 'TEMPLATE_PARAMETERS', 'SANDBOXED_JS_FOR_WEB_TEMPLATE', 'WEB_PERMISSIONS', 'TESTS', 'NOTES']);
  assert.deepEqual([template.info.type, template.info.containerContexts, template.info.displayName], ['TAG', ['WEB'], 'Queue Manager']);
  const versions = new Set([...fs.readFileSync(FILE, 'utf8').matchAll(/(?:tag |VERSION = ')(\d+\.\d+\.\d+)/g)].map((found) => found[1]));
  assert.deepEqual([...versions], ['1.0.0']);
});

test('the code keeps to the language of the sandbox', async () => {
  for (const sample of ['new X()', 'this.a', 'a = /x/', '`a`', 'f(...a)', 'window.a']) assert.notDeepEqual(forbidden(sample), [], sample);
  assert.deepEqual(forbidden(template.code), []);
  for (const code of ['Object.keys({})', 'Math.max(1)', 'console.log(1)', "require('no such thing')"]) await assert.rejects(new Run({ template: { ...template, code } }).fire(), code);
});

test('it has the permissions it uses and no others', async () => {
  assert.deepEqual(readPermissions(template.permissions), {
    inject_script: { urls: ['https://*/snippet/qm.js*'] },
    send_pixel: { allowedUrls: 'specific', urls: ['https://*/api/v1/verify.gif*'] },
    get_url: { urlParts: 'specific', queriesAllowed: 'any', protocol: true, host: true, port: true },
    read_container_data: {},
    logging: { environments: 'debug' },
  });
  for (const dropped of template.permissions) {
    const fewer = { ...template, permissions: template.permissions.filter((one) => one !== dropped) };
    await assert.rejects(new Run({ template: fewer, data: GOOD, preview: true }).fire(), /permission denied/, dropped.instance.key.publicId);
  }
});

test('the permissions cover no other address', () => {
  const [script] = readPermissions(template.permissions).inject_script.urls;
  for (const [url, ok] of [[SNIPPET, true], ['https://queue.example.com:8443/snippet/qm.js?x', true], ['http://queue.example.com/snippet/qm.js', false], ['https://evil.example/x.js', false], ['https://evil.example/x/snippet/qm.js', false]]) assert.equal(fits(script, url), ok, url);
});

const fields = new Map(template.parameters.flatMap((field) => [field, ...(field.subParams ?? [])]).map((field) => [field.name, field]));
function accepts(name, text) {
  return fields.get(name).valueValidators.every(({ type, args }) => (type === 'NON_EMPTY' ? text !== '' : new RegExp(args[0]).test(text)));
}

// field, what is typed, whether the form takes it, whether the code takes it
const TYPED = [
  ['server', 'https://queue.example.com', true, true],
  ['server', 'https://queue.example.com/', true, true],
  ['server', 'https://queue.example.com:8443', true, true],
  ['server', 'https://Queue.Example.com', true, true],
  ['server', '{{queue server}}', true, false],
  ['server', 'queue.example.com', false, false],
  ['server', 'http://queue.example.com', false, false],
  ['server', 'https://queue.example.com/x', false, false],
  ['server', 'https://queue.example.com//', false, false],
  ['server', 'https://queue.example.com?x', false, false],
  ['server', 'https://queue.example.com#x', false, false],
  ['server', 'https://queue.example.com?', false, false],
  ['server', 'https://user:pw@queue.example.com', false, false],
  ['server', 'https://', false, false],
  ['server', 'javascript:alert(1)', false, false],
  ['server', '', false, false],
  ['server', ' https://queue.example.com', false, true],
  ['room', 'checkout', true, true],
  ['room', 'a'.repeat(64), true, true],
  ['room', 'A_b-9', true, true],
  ['room', '{{room}}', true, false],
  ['room', 'checkout ', false, true],
  ['room', 'a'.repeat(65), false, false],
  ['room', 'check out', false, false],
  ['room', 'a&connector=x', false, false],
  ['room', 'a\nb', false, false],
  ['room', 'ห้อง', false, false],
  ['room', '', false, false],
  ['timeout', '', true, true],
  ['timeout', '3000', true, true],
  ['timeout', '-1', false, true],
  ['timeout', '1e9', false, true],
];
for (const [name, text, byForm, byCode] of TYPED) {
  test(`field ${name}: ${JSON.stringify(text).slice(0, 50)}`, async () => {
    assert.equal(accepts(name, text), byForm, 'the form');
    for (const preview of [false, true]) {
      const run = await new Run({ data: { ...GOOD, [name]: text }, preview }).fire();
      assert.deepEqual([run.count('injectScript'), run.count('gtmOnSuccess'), run.count('gtmOnFailure')], byCode ? [1, 1, 0] : [0, 0, 1], 'the code');
      if (preview && !byCode) assert.match(run.said()[0], /page is open/);
    }
  });
}

test('what a variable may give', async () => {
  for (const data of [{}, { server: null, room: null }, { server: 7, room: 7 }, { server: [], room: {} }, { server: true }, { ...GOOD, room: undefined }]) {
    const run = await new Run({ data }).fire();
    assert.deepEqual([run.count('injectScript'), run.count('gtmOnFailure')], [0, 1], JSON.stringify(data));
  }
  const run = await new Run({ data: { ...GOOD, room: 42, timeout: 500, spa: 'true' } }).fire();
  assert.equal(run.argument('injectScript'), SNIPPET.replace('checkout', '42&timeout=500&spa=auto'));
});

// settings, what is loaded
for (const [more, url] of [
  [{}, SNIPPET],
  [{ server: 'https://queue.example.com/' }, SNIPPET],
  [{ room: ' checkout ' }, SNIPPET],
  [{ spa: true }, `${SNIPPET}&spa=auto`],
  [{ spa: false, timeout: '' }, SNIPPET],
  [{ timeout: '3000' }, `${SNIPPET}&timeout=3000`],
  [{ timeout: '1 s' }, SNIPPET],
]) {
  test(`what is loaded for ${JSON.stringify(more)}`, async () => {
    const run = await new Run({ data: { ...GOOD, ...more } }).fire();
    assert.equal(run.argument('injectScript'), url);
    const page = await open({ tags: [tag({}, url)] });
    assert.deepEqual([page.window.QueueManager.server, page.window.QueueManager.roomId], ['https://queue.example.com', 'checkout']);
  });
}

// what the network does, successes, failures
for (const [name, load, success, failure] of [
  ['everything loads', () => true, 1, 0],
  ['the script is blocked', (kind) => kind !== 'script', 0, 1],
  ['the pixel is blocked', (kind) => kind !== 'pixel', 1, 0],
  ['everything is blocked', () => false, 0, 1],
  ['the visitor has left before anything loads', () => new Promise(() => {}), 0, 0],
]) {
  for (const preview of [false, true]) {
    test(`${name}${preview ? ', in Preview' : ''}: one result`, async () => {
      const run = new Run({ data: GOOD, preview, load });
      await Promise.race([run.fire(), new Promise(setImmediate)]);
      assert.deepEqual([run.count('gtmOnSuccess'), run.count('gtmOnFailure')], [success, failure]);
    });
  }
}

test('fired twice on a page, it loads once and reports each time', async () => {
  let loads = 0;
  const run = new Run({ data: GOOD, load: () => (loads += 1) });
  await run.fire();
  await run.fire();
  assert.deepEqual([loads, run.count('gtmOnSuccess'), run.count('gtmOnFailure')], [1, 2, 0]);
});

test('a published container asks and says nothing', async () => {
  for (const load of [() => true, () => false]) {
    const run = await new Run({ data: GOOD, load }).fire();
    assert.deepEqual([run.count('sendPixel'), run.count('logToConsole'), run.count('getUrl')], [0, 0, 0]);
  }
});

/** The pixel as a browser loads it from the real server. */
const pixels = [];
async function image(kind, url) {
  if (kind === 'script') return true;
  const answer = await server.get(url.slice('https://queue.example.com'.length));
  pixels.push(answer);
  return answer.status === 200 && answer.headers['content-type'] === 'image/gif';
}

test('Preview against a real server', async () => {
  await server.room({ id: 'checkout' });
  await server.room({ id: 'homeless', targetUrl: null });
  for (const [room, page, ok, failed] of [
    ['checkout', 'https://shop.example.com/x?y#z', true],
    ['checkout', 'https://shop.example.com:443/', true],
    ['chekout', 'https://shop.example.com/', false, /room_exists/],
    ['Checkout', 'https://shop.example.com/', false, /room_exists/],
    ['checkout', 'https://www.shop.example.com/', false, /tag_origin/],
    ['checkout', 'https://shop.example.com:8443/', false, /tag_origin/],
    ['checkout', 'http://shop.example.com/', false, /tag_origin/],
    ['homeless', 'https://shop.example.com/', false, /return_policy/],
  ]) {
    const run = await new Run({ data: { ...GOOD, room }, preview: true, page, load: image }).fire();
    const [line] = run.said();
    const what = `${room} ${page}: ${line}`;
    assert.equal(run.said().length, 1, what);
    if (ok) assert.ok(line.includes(`room "${room}" checked out`), what);
    else {
      assert.ok(line.includes(`REFUSED room "${room}"`) && line.includes('blocker') && line.includes(run.argument('sendPixel')), what);
      assert.match(pixels.at(-1).headers['x-qm-verify'], failed);
      assert.equal(pixels.at(-1).status, 424);
    }
    assert.equal(pixels.at(-1).headers['cache-control'], 'no-store');
    assert.equal(run.count('gtmOnSuccess'), 1, 'Preview is a warning, not a barrier');
  }
});

test('the pixel names room, site, connector and version, encoded', async () => {
  const run = await new Run({ data: GOOD, preview: true, page: 'https://shop.example.com:8443/a' }).fire();
  assert.equal(run.argument('sendPixel'), 'https://queue.example.com/api/v1/verify.gif?roomId=checkout&origin=https%3A%2F%2Fshop.example.com%3A8443&connector=gtm&version=1.0.0');
  assert.equal(SITE, 'https://shop.example.com');
});

// ---- the scenarios in the file, as Tag Manager's own editor runs them ----------------------------

function scenarios() {
  const [list, setup] = template.tests.split(/^setup: \|-\n/m);
  const code = (text) => text.replace(/^ {2,4}/gm, '');
  return list.split(/^- name: /m).slice(1).map((one) => {
    const [name, body] = one.split('\n  code: |-\n');
    return { name, source: `${code(setup)}\n${code(body)}` };
  });
}

for (const { name, source } of scenarios()) {
  test(`scenario: ${name}`, async () => {
    const mocks = {};
    const runs = [];
    const world = {
      mock: (api, act) => void (mocks[api] = act),
      runCode: (data) => runs.push(new Run({ data, preview: true, mocks })) && runs.at(-1).fire(),
      assertThat: (got) => ({ isEqualTo: (wanted) => assert.deepEqual(got, wanted) }),
      assertApi: (api) => ({ wasCalled: () => assert.ok(runs[0].count(api) > 0, api), wasNotCalled: () => assert.equal(runs[0].count(api), 0, api) }),
    };
    vm.runInNewContext(source, world);
  });
}
test('there are scenarios', () => assert.ok(scenarios().length >= 5));
