// The pure functions of the console. Run with `node --test public/test/console.test.mjs`.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import * as c from '../console.js';

const read = (name) => readFile(new URL(`../${name}`, import.meta.url), 'utf8');
const check = (fn, rows) => rows.forEach(([want, ...args]) => assert.deepEqual(fn(...args), want, JSON.stringify(args)));
const room = { id: 'sale', rate: 60, waiting: 0, maxConcurrent: null, branding: { title: 'Sale', message: 'Old', messageAt: 5 } };

test('numbers and durations are readable and never made up', () => {
  check(c.number, [['0', 0], ['12,345', 12345], ['0.25', 0.25], ['–', null], ['–', undefined], ['–', NaN]]);
  check(c.duration, [
    ['0 s', 0], ['59 s', 59], ['1 min', 60], ['1 min 1 s', 61], ['1 h', 3600], ['1 h 1 min', 3661], ['1 d', 86400],
    ['2 d 3 h', 2 * 86400 + 3 * 3600 + 59], ['–', null], ['0 s', -4],
  ]);
});

test('an estimate is a number, a lower bound, or said to be missing', () => {
  check(c.estimate, [
    ['no estimate', { estWaitSec: null }], ['none', { estWaitSec: 0 }], ['1 min 30 s', { estWaitSec: 90 }],
    ['at least 1 min 30 s', { estWaitSec: 90, estWaitFloor: true }], ['at least 0 s', { estWaitSec: 0, estWaitFloor: true }],
  ]);
});

test('a rush needs a queue that fills faster than it is released', () => {
  const rush = { effectiveState: 'active', waiting: 5, joinedLastMin: 61, rate: 60 };
  check(c.isRush, [
    [true, rush], [false, { ...rush, joinedLastMin: 60 }], [false, { ...rush, waiting: 0 }],
    [false, { ...rush, effectiveState: 'bypass' }],
  ]);
});

test('the tag names the server and the room', () => {
  assert.equal(
    c.tagFor('https://queue.example.com', 'sale'),
    '<script async src="https://queue.example.com/snippet/qm.js" ' +
      'data-qm-server="https://queue.example.com" data-qm-room="sale"></script>',
  );
});

test('a local time survives the way into the field and back', () => {
  for (const ms of [0, 1_700_000_000_000, Date.UTC(2030, 5, 1, 12, 34, 56)]) assert.equal(c.fromLocal(c.toLocal(ms)), ms);
  assert.match(c.toLocal(1_700_000_000_000), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
  check(c.toLocal, [['', null], ['', undefined]]);
  check(c.fromLocal, [[null, ''], [null, 'tomorrow'], [null, '2030-13-01T00:00']]);
});

test('typed numbers', () => {
  check(c.parseRate, [[0, '0'], [0.5, ' 0.5 '], [60, '60'], [null, ''], [null, '-1'], [null, '1e3'], [null, 'fast'], [null, '1,5']]);
  check(c.parseWhole, [[1, '1'], [500, ' 500 '], [null, '0'], [null, '1.5'], [null, ''], [null, '-2'], [null, '99999999999999999999']]);
});

test('changing the message keeps the rest of the branding', () => {
  check(c.withMessage, [
    [{ title: 'Sale', message: 'New' }, room.branding, 'New'], [{ title: 'Sale' }, room.branding, ''],
    [{ message: 'New' }, null, 'New'], [{}, undefined, ''],
  ]);
  assert.equal(room.branding.message, 'Old', 'the argument is left alone');
});

test('samples: ten minutes, in order, one per moment', () => {
  let list = [];
  for (let t = 0; t <= 700_000; t += 2000) list = c.addSample(list, t, 1);
  assert.deepEqual([list.length, list[0].t, list.at(-1).t], [300, 102_000, 700_000]);
  assert.deepEqual(c.addSample([{ t: 4, v: 1 }, { t: 9, v: 2 }], 9, 3), [{ t: 4, v: 1 }, { t: 9, v: 3 }]);
});

test('the sparkline draws the samples it has and leaves holes as holes', () => {
  assert.equal(c.sparkPath([], 300, 56), '');
  assert.equal(c.sparkPath([{ t: 1000, v: 0 }], 300, 56), 'M297 53h0');
  assert.equal(c.sparkPath([{ t: 0, v: 0 }, { t: 3000, v: 10 }], 300, 56), 'M295.5 53L297 3');
  const gap = [{ t: 0, v: 10 }, { t: 2000, v: 10 }, { t: 60_000, v: 10 }, { t: 62_000, v: 5 }];
  assert.equal(c.sparkPath(gap, 300, 56).match(/M/g).length, 2);
  assert.equal(c.sparkPath([{ t: 0, v: 3 }, { t: 60_000, v: 3 }], 300, 56).match(/h0/g).length, 2);
});

test('counts come by room, or by room and origin', () => {
  check(c.counts, [
    [{ total: 0, lines: [] }, undefined],
    [{ total: 5, lines: [['b', 4], ['a', 1]] }, { a: 1, b: 4 }],
    [{ total: 4, lines: [['a, https://x.example', 3], ['a, https://y.example', 1]] },
      { a: { 'https://y.example': 1, 'https://x.example': 3 } }],
  ]);
});

test('a refusal is shown with its own text and code', () => {
  check(c.seconds, [[42, '42'], [0, '0'], [null, null], [null, 'Wed, 21 Oct 2026 07:28:00 GMT'], [null, '']]);
  check(c.problem, [
    ['at most 1000000 (invalid_rate_per_minute)', 400, { error: 'at most 1000000', code: 'invalid_rate_per_minute' }, null],
    ['not now (storage_unavailable). Try again in 2 seconds.', 503, { error: 'not now', code: 'storage_unavailable' }, 2],
    ['The server answered 502.', 502, undefined, null],
    ['The server answered 503. Try again in 5 seconds.', 503, {}, 5],
    [c.STR.locked(42), 429, { error: 'locked', code: 'too_many_auth_failures' }, 42],
  ]);
  assert.match(c.STR.locked(42), /42 seconds/);
});

test('polling slows down after failures and respects Retry-After', () => {
  check(c.pollDelay, [[2000, 0, null, 0.5], [2000, 1, null, 0], [4000, 2, null, 0], [15000, 9, null, 0], [42000, 1, 42, 0]]);
  assert.ok(c.pollDelay(3, null, 1) > c.pollDelay(3, null, 0));
});

test('every control plans one request', () => {
  const sent = (act, fields) => {
    const { method, path, body } = c.plan(act, fields, room);
    return [method, path, body];
  };
  check(sent, [
    [['POST', '/rooms/sale/state', { state: 'paused' }], 'state', { choice: 'paused' }],
    [['POST', '/rooms/sale/rate', { ratePerMinute: 0.5 }], 'rate', { rate: '0.5' }],
    [['POST', '/rooms/sale/flush', { count: 3 }], 'flush', { count: '3' }],
    [['POST', '/rooms/sale/schedule', { opensAt: null }], 'schedule', { choice: 'clear', opensAt: '2030-01-01T00:00' }],
    [['POST', '/rooms/sale/schedule', { opensAt: new Date(2030, 0, 1).getTime() }], 'schedule', { choice: 'set', opensAt: '2030-01-01T00:00' }],
    [['POST', '/rooms', { id: 'sale', branding: { title: 'Sale', message: 'Hi' } }], 'message', { choice: 'set', message: ' Hi ' }],
    [['POST', '/rooms', { id: 'sale', branding: { title: 'Sale' } }], 'message', { choice: 'clear', message: 'Hi' }],
    [['POST', '/rooms/sale/eject', { ticket: 7 }], 'eject', { ticket: '7' }],
    [['POST', '/rooms/sale/purge', {}], 'purge', {}],
    [['DELETE', '/rooms/sale', undefined], 'delete', {}],
  ]);
  for (const [act, fields] of [['rate', { rate: 'x' }], ['flush', { count: '0' }], ['eject', { ticket: '' }], ['schedule', { opensAt: '' }]])
    assert.ok(c.plan(act, fields, room).problem, act);
  assert.match(c.plan('flush', { count: '3' }, room).note({ released: 2 }), /2/);
});

test('creating sends only what was typed', () => {
  const blank = { id: '', name: '', rate: '', targetUrl: '' };
  assert.ok(c.planCreate(blank).problem);
  assert.ok(c.planCreate({ ...blank, id: 'a', rate: 'x' }).problem);
  assert.deepEqual(c.planCreate({ ...blank, id: ' a ' }).body, { id: 'a' });
  assert.deepEqual(c.planCreate({ id: 'a', name: ' A ', rate: '90', targetUrl: 'https://s.example/' }).body, {
    id: 'a', name: 'A', ratePerMinute: 90, targetUrl: 'https://s.example/',
  });
});

test('figures: slots against their limit, opening only while it lies ahead', () => {
  const text = (r, key, now = 0) => c.figures(r, now).find(([k]) => k === key)?.[2];
  assert.equal(text({ ...room, slotsUsed: 3 }, 'slots'), '3 / no limit');
  assert.equal(text({ ...room, slotsUsed: 3, maxConcurrent: 10 }, 'slots'), '3 / 10');
  assert.equal(text({ ...room, opensAt: 90_000 }, 'opens'), '1 min 30 s');
  assert.equal(text({ ...room, opensAt: 90_000 }, 'opens', 90_000), undefined);
});

test('the page has no inline script, style or handler, and every text and node it names exists', async () => {
  const [html, js] = [await read('console.html'), await read('console.js')];
  assert.doesNotMatch(html, /\sstyle=|<style|\son[a-z]+=/i);
  for (const [tag] of html.matchAll(/<script[^>]*>/g)) assert.match(tag, /src="\{\{js\}\}"/);
  for (const hole of ['{{css}}', '{{js}}', '{{lang}}']) assert.ok(html.includes(hole), hole);
  for (const [, key] of html.matchAll(/data-(?:t|label)="([^"]+)"/g)) assert.equal(typeof c.STR[key], 'string', key);
  for (const [, key] of js.matchAll(/STR\.(\w+)/g)) assert.ok(key in c.STR, key);
  for (const [, id] of js.matchAll(/\$\('([\w-]+)'\)/g)) assert.ok(html.includes(`id="${id}"`), id);
  assert.doesNotMatch(js, /innerHTML|insertAdjacentHTML|localStorage|eval\(/);
});
