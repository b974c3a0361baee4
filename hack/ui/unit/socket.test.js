import test from 'node:test';
import assert from 'node:assert/strict';
import { delay } from '../../../api/ui/assets/core/backoff.js';
import { createPoller } from '../../../api/ui/assets/core/poller.js';
import { createCursor, openSocket } from '../../../api/ui/assets/core/socket.js';

// A clock whose timers run when the test asks for it.
function createTimers() {
  const waiting = [];
  return {
    waiting,
    setTimeout: (run, ms) => waiting.push({ run, ms }),
    clearTimeout: (n) => n && waiting[n - 1] && (waiting[n - 1].run = () => {}),
    async next() {
      const { run, ms } = waiting.at(-1);
      run();
      await settle();
      return ms;
    },
  };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));

// A server of WebSockets: each that is opened is in the list.
function createServer() {
  const opened = [];
  class Socket {
    constructor(url) {
      this.url = new URL(url);
      this.sent = [];
      opened.push(this);
    }
    send(text) {
      this.sent.push(JSON.parse(text));
    }
    close() {}
    open() {
      this.readyState = 1;
      this.onopen();
    }
    message(m) {
      this.onmessage({ data: JSON.stringify(m) });
    }
    lose(code = 1006) {
      this.readyState = 3;
      this.onclose({ code });
    }
  }
  return { opened, Socket };
}

async function start(options = {}) {
  const server = createServer();
  const timers = createTimers();
  const seen = [];
  const states = [];
  let tickets = 0;
  const api = { base: 'http://node:1/berth/', token: 'own', ticket: async () => `ticket-${(tickets += 1)}`, ...options.api };
  const socket = openSocket({
    api,
    container: 'a b',
    WebSocket: server.Socket,
    timers,
    onMessage: (m) => seen.push(m),
    onState: (s) => states.push(s),
  });
  await settle();
  return { ...server, timers, seen, states, socket };
}

test('the address has a ticket', async () => {
  const s = await start();
  assert.equal(s.opened[0].url.href, 'ws://node:1/berth/ws/a%20b?tail=500&token=ticket-1');
  s.opened[0].open();
  assert.deepEqual(s.opened[0].sent, []);
  assert.equal(s.socket.send({ event: 'send_command', data: 'say' }), true);
});

test('after a lost connection nothing is missing and nothing comes twice', async () => {
  const s = await start();
  s.opened[0].open();
  s.opened[0].message({ event: 'event', data: 'running', seq: 7, epoch: 'e' });
  s.opened[0].message({ event: 'logs', data: 'x\n', times: ['t'], line: '1.2' });
  s.opened[0].lose();
  assert.equal(s.states.at(-1).online, false);
  assert.equal(s.socket.send({}), false);
  await s.timers.next();
  assert.deepEqual(Object.fromEntries(s.opened[1].url.searchParams), { tail: '0', since: '7', epoch: 'e', since_line: '1.2', token: 'ticket-2' });
  s.opened[1].open();
  s.opened[1].message({ event: 'event', data: 'running', seq: 7, epoch: 'e' });
  s.opened[1].message({ event: 'event', data: 'exit', seq: 8, epoch: 'e' });
  assert.deepEqual(s.seen.map((m) => m.data), ['running', 'x\n', 'exit']);
  assert.equal(s.states.at(-1).online, true);
}); // prettier-ignore

test('the wait grows, and begins anew after a success', async () => {
  const s = await start();
  const waits = [];
  for (let i = 0; i < 8; i++) {
    s.opened.at(-1).lose();
    waits.push(await s.timers.next());
  }
  assert.ok(waits[0] >= 500 && waits[0] <= 600);
  assert.ok(waits[7] >= 10_000 && waits[7] <= 12_000);
  s.opened.at(-1).open();
  s.opened.at(-1).lose();
  assert.ok((await s.timers.next()) <= 600);
});

test('a deleted container and a lost token end it', async () => {
  const s = await start();
  s.opened[0].open();
  s.opened[0].lose(1000);
  assert.match(s.states.at(-1).reason, /deleted/);
  assert.equal(s.timers.waiting.length, 0);
  const lost = await start({ api: { ticket: async () => Promise.reject(Object.assign(new Error(), { status: 401 })) } });
  assert.match(lost.states.at(-1).reason, /Log in/);
  assert.equal(lost.opened.length, 0);
});

test('no daemon: it tries again; a closed one does not', async () => {
  let down = true;
  const s = await start({ api: { ticket: async () => (down ? Promise.reject(new Error('offline')) : 'x') } });
  assert.equal(s.opened.length, 0);
  down = false;
  await s.timers.next();
  assert.equal(s.opened.length, 1);
  s.socket.close();
  s.opened[0].lose();
  assert.equal(s.opened.length, 1);
});

test('after a gap the cursor goes on behind it, with the new epoch', () => {
  const c = createCursor(10);
  c.take({ event: 'event', seq: 50, epoch: 'a' });
  assert.equal(c.take({ event: 'gap', data: '3', epoch: 'b' }), true);
  assert.equal(c.take({ event: 'event', seq: 3, epoch: 'b' }), true);
  assert.equal(c.take({ event: 'event', seq: 3, epoch: 'b' }), false);
  assert.equal(c.query().epoch, 'b');
});

test('a poller heals, and reads at once when it is asked', async () => {
  const timers = createTimers();
  const data = [];
  const errors = [];
  let fails = true;
  let reads = 0;
  const read = async () => {
    reads += 1;
    if (fails) throw new Error('offline');
    return reads;
  };
  const poller = createPoller({
    read,
    interval: () => 2000,
    onData: (d) => data.push(d),
    onError: (e, n) => errors.push(n),
    timers,
  });
  await settle();
  assert.deepEqual(errors, [1]);
  fails = false;
  assert.ok((await timers.next()) <= 600);
  assert.deepEqual(data, [2]);
  assert.equal(timers.waiting.at(-1).ms, 2000);
  poller.now();
  poller.now(); // while it reads: one more read follows
  await settle();
  assert.equal(timers.waiting.at(-1).ms, 0);
  poller.stop();
  await timers.next();
  assert.equal(data.length, 2 + 0);
});

test('delays are bounded and differ between pages', () => {
  assert.equal(delay(1, () => 0), 500);
  assert.equal(delay(3, () => 0), 2000);
  assert.equal(delay(100, () => 1), 12_000);
}); // prettier-ignore
