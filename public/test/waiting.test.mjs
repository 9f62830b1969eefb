import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import * as page from '../waiting.js';

const file = (path) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const LANGS = ['en', 'th', 'de', 'es', 'fr', 'ja', 'zh', 'ar'];
const STRINGS = Object.fromEntries(LANGS.map((lang) => [lang, JSON.parse(file(`i18n/${lang}.json`))]));
const say = (lang) => (key, values) => page.fill(STRINGS[lang][key], values);
const token = (payload) => `${Buffer.from(JSON.stringify({ r: 'demo', g: 1, iat: 1, ...payload })).toString('base64url')}.sig`;
const placeholders = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((m) => m[1]).sort();

test('tokens are read without trusting them', () => {
  assert.equal(page.readToken(token({ r: 'ลาน', n: 3 })).r, 'ลาน');
  for (const bad of [null, undefined, '', '.', 'garbage', '!!!.x', `${btoa('null')}.x`, `${btoa('{"r":1}')}.x`]) {
    assert.equal(page.readToken(bad), null, String(bad));
  }
});

test('a refreshed token is stored only for the same place', () => {
  const rows = [
    [{ n: 5 }, { n: 5, iat: 9 }, true],
    [{ n: 5 }, { n: 5, iat: 9, kid: '00112233' }, true],
    [{ n: 5 }, { n: 6 }, false],
    [{ n: 5 }, { n: 5, g: 2 }, false],
    [{ n: 5 }, { n: 5, r: 'other' }, false],
    [{ n: 5 }, { q: 5 }, false],
    [{ n: 5 }, { n: 0 }, false],
    [{ q: 7 }, { q: 7, iat: 9 }, true],
    [{ q: 7 }, { q: 8 }, false],
    [{ q: 7 }, { n: 90 }, true],
    [{ q: 7 }, { n: 0 }, false],
    [{ q: 7 }, { n: 90, g: 2 }, false],
    [{ q: 7 }, { n: 90, r: 'other' }, false],
    [{}, {}, false],
  ];
  for (const [held, fresh, same] of rows) {
    assert.equal(page.samePlace(token(held), token(fresh)), same, JSON.stringify([held, fresh]));
  }
  assert.equal(page.samePlace(null, token({ n: 1 })), false);
  assert.equal(page.samePlace(token({ n: 1 }), 'garbage'), false);
});

test('frames have a phase', () => {
  const rows = [
    [{ expired: true, state: 'expired', reason: 'left' }, 'expired'],
    [{ passed: true, state: 'passed' }, 'passed'],
    [{ passed: true, state: 'bypass' }, 'bypass'],
    [{ passed: false, state: 'scheduled' }, 'scheduled'],
    [{ passed: false, scheduled: true, preQueued: true }, 'scheduled'],
    [{ passed: false, state: 'paused' }, 'paused'],
    [{ passed: false, state: 'waiting' }, 'waiting'],
  ];
  for (const [frame, phase] of rows) assert.equal(page.phaseOf(frame), phase);
});

test('the wait in words is honest and never too short', () => {
  const rows = [
    [null, 'we cannot say yet'],
    [undefined, 'we cannot say yet'],
    [0, 'less than a minute'],
    [59, 'less than a minute'],
    [60, 'about 1 minute'],
    [200, 'about 4 minutes'],
    [240, 'about 4 minutes'],
    [601, 'about 15 minutes'],
    [3600, 'about 1 hour'],
    [5400, 'about 1 hour, 30 minutes'],
    [6 * 3600 + 1, 'about 7 hours'],
    [50 * 3600, 'about 3 days'],
  ];
  for (const [seconds, words] of rows) assert.equal(page.waitWords(seconds, say('en'), 'en'), words);
  assert.equal(page.waitWords(700, say('en'), 'en', true), 'at least 15 minutes');
  assert.equal(page.waitWords(240, say('de'), 'de'), 'etwa 4 Minuten');
  assert.equal(page.waitWords(240, say('ar'), 'ar'), 'حوالي 4 دقائق');
  for (let s = 60; s < 200000; s += 97) {
    const shown = page.waitParts(s).reduce((sum, [n, unit]) => sum + n * { minute: 60, hour: 3600, day: 86400 }[unit], 0);
    assert.ok(shown >= s, `${s} s shown as ${shown} s`);
  }
});

test('countdown and opening time agree on a skewed clock', () => {
  const now = 1_700_000_000_000;
  const opensAt = now + 600_000;
  for (const skew of [0, 7_200_000, -7_200_000, 3_600_000]) {
    const client = now + skew;
    const local = page.localInstant(opensAt, now, client);
    assert.equal(local - client, 600_000);
    assert.equal(page.countdownText(local - client, 'en'), '10:00');
  }
  assert.equal(page.countdownText(-5, 'en'), '00:00');
  assert.equal(page.countdownText(1, 'en'), '00:01');
  assert.equal(page.countdownText(3_725_000, 'en'), '01:02:05');
  assert.equal(page.countdownText(2 * 86_400_000 + 5000, 'en'), '2 days 00:00:05');
});

test('the pass goes into the query and leaves the rest alone', () => {
  const rows = [
    ['https://shop.example.com/buy?x=1#/step/2', 'https://shop.example.com/buy?x=1&qm_token=T#/step/2'],
    ['https://shop.example.com/buy?qm_token=OLD&x=1', 'https://shop.example.com/buy?x=1&qm_token=T'],
    ['https://shop.example.com/buy?x=1&x=2&y', 'https://shop.example.com/buy?x=1&x=2&y&qm_token=T'],
    ['https://shop.example.com/buy?', 'https://shop.example.com/buy?qm_token=T'],
    ['https://shop.example.com/buy?q=%E0%B8%81&r=a+b', 'https://shop.example.com/buy?q=%E0%B8%81&r=a+b&qm_token=T'],
    ['https://shop.example.com/buy?%71m_token=OLD&a=%zz', 'https://shop.example.com/buy?a=%zz&qm_token=T'],
    ['https://shop.example.com/#qm_token=z', 'https://shop.example.com/?qm_token=T#qm_token=z'],
  ];
  for (const [from, to] of rows) assert.equal(page.withToken(from, 'T'), to);
});

test('the destination: return address, current target, target at load, never the queue itself', () => {
  const origin = 'https://queue.example.com';
  const go = (config, frame = {}) => page.destination({ base: '', ...config }, frame, 'T', origin);
  const back = 'https://shop.example.com/cart';
  const target = 'https://shop.example.com/';
  assert.equal(go({ returnUrl: back, targetUrl: target }, { redirectUrl: target }), `${back}?qm_token=T`);
  assert.equal(go({ targetUrl: 'https://old.example.com/' }, { redirectUrl: `${target}?qm_token=T` }), `${target}?qm_token=T`);
  assert.equal(go({ targetUrl: target }), `${target}?qm_token=T`);
  assert.equal(go({}), null);
  const own = ['/', '/w/demo', '/w/demo?x', '/api/v1/join', '/events', '/__qm/x', '/%77/demo', '/%5f%5fqm/w', '//w/demo'];
  for (const path of own) {
    assert.equal(go({ returnUrl: origin + path, targetUrl: target }), `${target}?qm_token=T`, path);
  }
  for (const bad of ['javascript:alert(1)', 'data:text/html,x', '/relative', 'https://a@shop.example.com/', 'ftp://a/']) {
    assert.equal(go({ returnUrl: bad }), null, bad);
  }
  const inline = (path) => page.destination({ base: '/__qm', returnUrl: origin + path }, {}, 'T', origin);
  assert.equal(inline('/w/demo'), `${origin}/w/demo?qm_token=T`);
  for (const path of ['/__qm', '/__qm/w/demo', '/%5F%5Fqm/w', '/__QM/w']) assert.equal(inline(path), null, path);
});

test('progress never runs backwards, and a new place starts anew', () => {
  let state = null;
  let last = 0;
  for (const position of [100, 80, 90, 120, 60, 60, 1, 0]) {
    state = page.nextProgress(state, '1.5', position);
    assert.ok(state.value >= last && state.value > 0 && state.value <= 1, `${position}: ${state.value}`);
    last = state.value;
  }
  assert.equal(last, 1);
  assert.ok(page.nextProgress(state, '1.6', 50).value < 0.05);
});

test('pauses grow, are spread and have bounds', () => {
  for (let attempt = 0; attempt < 40; attempt += 1) {
    const least = page.backoff(attempt, () => 0);
    const most = page.backoff(attempt, () => 0.999999);
    const middle = Math.min(30000, 2000 * 2 ** attempt);
    assert.equal(least, middle / 2);
    assert.ok(most > least && most < middle * 1.5);
  }
  for (const retryAfter of [1, 5, 30, 3600]) {
    assert.equal(page.refusalPause(retryAfter, 9, () => 0), retryAfter * 1000);
    const most = page.refusalPause(retryAfter, 0, () => 1);
    assert.ok(most > retryAfter * 1000 && most <= retryAfter * 1000 + 15000);
  }
  for (const none of [0, NaN, undefined]) assert.ok(page.refusalPause(none, 3, () => 0) >= 12000);
});

test('announcements come at most every 15 seconds unless the state changes', () => {
  const last = { text: 'a', key: 'waiting', at: 1000 };
  assert.equal(page.shouldSpeak(last, { text: 'b', key: 'waiting' }, 15999), false);
  assert.equal(page.shouldSpeak(last, { text: 'b', key: 'waiting' }, 16000), true);
  assert.equal(page.shouldSpeak(last, { text: 'b', key: 'paused' }, 1001), true);
  assert.equal(page.shouldSpeak(last, { text: 'a', key: 'paused' }, 99999), false);
  assert.equal(page.shouldSpeak(last, { text: '', key: 'paused' }, 99999), false);
});

test('operator colours are read as hex only', () => {
  assert.equal(page.luminance('#fff'), 1);
  assert.equal(page.luminance('#000000'), 0);
  for (const bad of ['red', '#12', 'url(x)', undefined, null, '#ffffff;']) assert.equal(page.luminance(bad), null);
});

test('every language has the same keys and placeholders', () => {
  assert.deepEqual(readdirSync(new URL('../i18n', import.meta.url)).sort(), LANGS.map((l) => `${l}.json`).sort());
  for (const lang of LANGS) {
    assert.deepEqual(Object.keys(STRINGS[lang]), Object.keys(STRINGS.en), lang);
    for (const [key, text] of Object.entries(STRINGS[lang])) {
      assert.ok(typeof text === 'string' && text.trim(), `${lang}.${key} is empty`);
      assert.deepEqual(placeholders(text), placeholders(STRINGS.en[key]), `${lang}.${key}`);
      assert.ok(!/[<>&]/.test(text), `${lang}.${key} holds markup`);
    }
  }
});

test('nothing is left in English', () => {
  const script = { th: /[\u0e00-\u0e7f]/, ja: /[\u3040-\u30ff\u4e00-\u9fff]/, zh: /[\u4e00-\u9fff]/, ar: /[\u0600-\u06ff]/ };
  for (const lang of LANGS.filter((l) => l !== 'en')) {
    for (const [key, text] of Object.entries(STRINGS[lang])) {
      assert.notEqual(text, STRINGS.en[key], `${lang}.${key}`);
      if (script[lang]) assert.match(text, script[lang], `${lang}.${key}`);
    }
  }
});

test('every string named by page and module exists, and every id the module writes to', () => {
  const html = file('waiting.html');
  const module = file('waiting.js');
  const named = [
    ...[...html.matchAll(/data-t(?:-label)?="(\w+)"/g)].map((m) => m[1]),
    ...[...module.matchAll(/'((?:status|expired|err|heading|notify|wait|nojs)_\w+)'/g)].map((m) => m[1]),
    ...[...module.matchAll(/\bt\('(\w+)'/g)].map((m) => m[1]),
    ...['joining', 'waiting', 'paused', 'bypass', 'retry'].map((phase) => `status_${phase}`),
    ...['pass_expired', 'session_ended', 'ejected', 'purged', 'room_reset', 'left'].map((reason) => `expired_${reason}`),
  ];
  for (const key of named) assert.ok(key in STRINGS.en, key);
  for (const [, id] of module.matchAll(/(?:screen|this)\.(?:at|set|line|toggle)\('([\w-]+)'/g)) {
    assert.ok(html.includes(`id="qm-${id}"`), id);
  }
});

test('the templates carry no inline script, style or handler', () => {
  for (const name of ['waiting.html', 'notfound.html']) {
    const html = file(name);
    assert.ok(!/<style|\sstyle=|\son[a-z]+=/i.test(html), name);
    for (const [, attributes] of html.matchAll(/<script\b([^>]*)>/g)) assert.match(attributes, /application\/json|src=/);
    assert.match(html, /name="robots" content="noindex"/);
  }
});
