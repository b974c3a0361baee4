// A WebSocket of one container, which reconnects and misses nothing: it keeps the
// cursors of transitions (seq, epoch) and of console lines (line).
import { delay } from './backoff.js';
import { path, query } from './api.js';

// final are the close codes after which connecting again is of no use.
const final = new Map([[1000, 'The container is deleted.']]);

// createCursor returns what a client of a socket has to remember. take returns whether
// a message is new: the current state repeats the seq of its transition on connect.
export function createCursor(tail) {
  const at = { seq: 0, epoch: '', line: '' };
  return {
    query: () => ({
      tail: at.line ? 0 : tail,
      since: at.seq || undefined,
      epoch: at.epoch || undefined,
      since_line: at.line || undefined,
    }),
    take(message) {
      if (message.line) at.line = message.line;
      if (message.event === 'gap') {
        at.epoch = message.epoch;
        at.seq = Math.max(0, Number(message.data) - 1);
        return true;
      }
      if (message.seq === undefined) return true;
      if (message.epoch === at.epoch && message.seq <= at.seq) return false;
      at.seq = message.seq;
      at.epoch = message.epoch;
      return true;
    },
  };
}

// openSocket connects, and connects again until close is called. onState is called with
// {online, reason}, onMessage with each new message.
export function openSocket({
  api,
  container,
  tail = 500,
  onMessage,
  onState,
  WebSocket = globalThis.WebSocket,
  timers = globalThis,
}) {
  const cursor = createCursor(tail);
  let socket;
  let timer;
  let failures = 0;
  let closed = false;

  const again = () => {
    if (closed) return;
    failures += 1;
    onState({ online: false, reason: '' });
    timer = timers.setTimeout(connect, delay(failures));
  };

  async function connect() {
    let token;
    try {
      token = await api.ticket();
    } catch (error) {
      if (error.status === 401) return end('The token is no longer valid. Log in again.');
      return again();
    }
    if (closed) return;
    const url = new URL(`ws/${path(container)}${query({ ...cursor.query(), token })}`, api.base);
    url.protocol = url.protocol.replace('http', 'ws');
    attach(new WebSocket(url.href));
  }

  function end(reason) {
    closed = true;
    onState({ online: false, reason });
  }

  function attach(next) {
    socket = next;
    next.onopen = () => {
      failures = 0;
      onState({ online: true, reason: '' });
    };
    next.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (!closed && cursor.take(message)) onMessage(message);
    };
    next.onclose = ({ code }) => {
      if (closed || next !== socket) return;
      if (final.has(code)) end(final.get(code));
      else again();
    };
  }

  connect();
  return {
    // send reports whether the message was handed to an open connection.
    send(message) {
      if (socket?.readyState !== 1) return false;
      socket.send(JSON.stringify(message));
      return true;
    },
    close() {
      closed = true;
      timers.clearTimeout(timer);
      if (socket?.readyState === 0) socket.onopen = () => socket.close();
      else socket?.close();
    },
  };
}
