// What the Worker does when something in it or around it breaks, and how that is counted.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BUILT, SHOP, World, until } from './world.mjs';

// The dataset's writes become lines of the log; /boom makes the core stop while a check is under way.
const WRAP = `
import door from 'DOOR';
export default {
  async fetch(request, env, ctx) {
    const QM_ANALYTICS = { writeDataPoint: (point) => console.log('counted ' + JSON.stringify(point)) };
    const bound = new Proxy(env, {
      get: (held, name) => {
        if (name === 'QM_ANALYTICS') return QM_ANALYTICS;
        if (name === 'QM_SERVER' && request.url.endsWith('/thrown')) throw new Error('boom');
        return held[name];
      },
    });
    const answer = door.fetch(request, bound, ctx);
    if (request.url.endsWith('/panic')) {
      // Rust unwraps the timer of a check: this is a real panic, and a trap.
      const real = globalThis.setTimeout;
      globalThis.setTimeout = () => {
        globalThis.setTimeout = real;
        throw new Error('no timers');
      };
    }
    if (request.url.endsWith('/stopped')) globalThis.__worker_init_state.criticalError = true;
    return answer;
  },
};`;

const down = (request) => request.socket.destroy();
const queues = (_, response) => response.end('{"action":"queue","waitingRoomUrl":"/w/checkout"}');

for (const form of BUILT)
  describe(`faults: ${form}`, () => {
    test('every visitor let through by an outage is counted', async () => {
      const world = await World.start({ form, wrap: WRAP, queue: down });
      try {
        for (let i = 0; i < 3; i += 1) assert.equal((await world.visit(`${SHOP}/a`)).headers['x-qm-failover'], 'unreachable');
        await until(() => world.logged.split('counted ').length > 3, 'three points');
        const point = JSON.parse(/counted (\{.*\})/.exec(world.logged)[1]);
        assert.deepEqual(point, { indexes: ['checkout'], blobs: ['failover', 'unreachable', 'checkout'], doubles: [1] });
        world.queue = queues;
        assert.equal((await world.visit(`${SHOP}/a`)).status, 302);
        assert.equal(world.logged.split('counted ').length, 4, 'who queues is not counted');
      } finally {
        await world.stop();
      }
    });

    test('an error of the code lets the visitor in, says so, and the next one queues', async () => {
      const world = await World.start({ form, wrap: WRAP, queue: queues });
      try {
        const open = await world.visit(`${SHOP}/thrown`);
        if (form === 'file') {
          assert.equal(open.status, 200);
          assert.equal(open.headers['x-qm-failover'], 'invalid-response');
        } else {
          // In Rust a variable that cannot be read is one that is not set.
          assert.equal(open.headers['x-qm-failover'], 'unreachable');
          return;
        }
        assert.equal((await world.visit(`${SHOP}/a`)).status, 302);
      } finally {
        await world.stop();
      }
    });

    if (form === 'worker')
      test('a core that stops hangs no request, and the next one queues', async () => {
        const world = await World.start({ form, wrap: WRAP, queue: queues });
        try {
          world.queue = () => {};
          const open = await world.visit(`${SHOP}/stopped`);
          assert.equal(open.status, 200);
          assert.equal(open.headers['x-qm-failover'], 'invalid-response');
          world.queue = queues;
          assert.equal((await world.visit(`${SHOP}/a`)).status, 302);
        } finally {
          await world.stop();
        }
      });

    if (form === 'worker')
      test('a panic hangs neither its own request nor others, and the isolate goes on', async () => {
        const world = await World.start({ form, wrap: WRAP, queue: queues });
        try {
          assert.equal((await world.visit(`${SHOP}/a`)).status, 302);
          let held;
          const arrived = new Promise((resolve) => {
            world.queue = () => resolve((held = true));
          });
          const other = world.visit(`${SHOP}/b`);
          await arrived;
          assert.ok(held);
          const open = await world.visit(`${SHOP}/panic`);
          assert.equal(open.status, 200);
          assert.equal(open.headers['x-qm-failover'], 'invalid-response');
          assert.equal((await other).headers['x-qm-failover'], 'invalid-response');
          assert.match(world.logged, /panic/);
          world.queue = queues;
          for (let i = 0; i < 3; i += 1) assert.equal((await world.visit(`${SHOP}/a`)).status, 302);
        } finally {
          await world.stop();
        }
      });

    test('a site that is down is its own trouble', async () => {
      const world = await World.start({ form, queue: (_, response) => response.end('{"action":"pass"}'), site: down });
      try {
        const answer = await world.visit(`${SHOP}/a`);
        assert.ok(answer.status >= 500);
        assert.equal(answer.headers['x-qm-failover'], undefined);
      } finally {
        await world.stop();
      }
    });

    test('failed points of the verification are logged, once an isolate', async () => {
      const world = await World.start({ form, queue: queues });
      try {
        world.verify = (response) => response.end('{"ok":false,"checks":[{"id":"room_exists","status":"fail","title":"no such room","fix":"use another"}]}');
        await Promise.all([1, 2, 3].map((i) => world.visit(`${SHOP}/${i}`)));
        await until(() => world.logged.includes('verification failed: room_exists: no such room (use another)'), 'the line');
        assert.equal(world.verified.length, 1);
      } finally {
        await world.stop();
      }
    });
  });
