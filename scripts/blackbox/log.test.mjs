// What a log may hold (C052): never a token, a key or a session id, whatever level is asked for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ADMIN_KEY, PUBLIC_API_KEY, SECRET, SHOP, until, withServer } from './harness.mjs';

for (const format of ['text', 'json']) {
  test(`C052: no secret of a visitor or an operator is in the ${format} log at the finest level`, async () => {
    await withServer({ RUST_LOG: 'trace', LOG_FORMAT: format }, async (own) => {
      const room = await own.room();
      const visitor = own.visitor();
      await visitor.join(room);
      const stream = await visitor.listen(`/events?token=${visitor.token}`);
      await stream.next();
      await own.flush(room);
      await stream.next((d) => d.passed, 'the pass');
      stream.close();
      await visitor.check(room);
      const { token, key } = visitor;
      const owner = visitor.jar.get(`qms_${room}`);
      assert.ok(token && key && owner);
      await own.get(`/api/v1/check?roomId=${room}&token=${token}&sess=${key}&url=${SHOP}/`);
      await own.get(`/api/v1/check?roomId=${room}&ip=203.0.113.7&agent=x&key=${PUBLIC_API_KEY}`);
      await own.vouched(new URLSearchParams({ roomId: room, ip: visitor.ip, agent: visitor.agent, token }));
      await own.get(`/api/v1/status?token=${token}x`);
      await own.get(`/api/v1/admin/rooms?key=${ADMIN_KEY}&ticket=${token}`);
      await own.get(`/api/v1/admin/rooms`, { headers: { Authorization: `Bearer ${ADMIN_KEY}x` } });
      await own.post('/api/v1/join', `{"roomId":"${room}","token":"${token}"`);
      await own.post('/api/v1/leave', { token }, { headers: visitor.headers() });
      await own.get(`/nowhere/${token}?qm_token=${token}`, { headers: { Referer: `${SHOP}/?qm_token=${token}` } });
      await own.get(`/w/${room}?qm_return=${encodeURIComponent(`${SHOP}/?qm_token=${token}`)}`);
      await own.raw(`GET /?token=${token} HTTP/1.1\r\nbroken ${key}\r\n\r\n`);
      await own.operate('DELETE', `/rooms/${room}`);
      await until(() => own.log.includes('room deleted'), 'the log to be written');
      const [payload, signature] = token.split('.');
      for (const [what, secret] of Object.entries({ token: payload, signature, key, owner, ADMIN_KEY, PUBLIC_API_KEY, SECRET })) {
        assert.ok(!own.log.includes(secret), `${what} is in the log: ${own.log.split('\n').find((line) => line.includes(secret))}`);
      }
      assert.ok(!own.log.includes(visitor.ip), 'the address of a visitor');
    });
  });
}
