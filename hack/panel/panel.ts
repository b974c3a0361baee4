// A panel that does the main job against berth, written against the types that
// openapi-typescript generates from api/openapi.yaml (api.ts), with openapi-fetch as its client.
//
// Environment: BERTH_URL, BERTH_TOKEN, IMAGE, PORT. It prints one line per step. After
// "kill" it reads a line from standard input: berth is killed and started meanwhile.
import { createInterface } from 'node:readline/promises';
import WebSocket from 'ws';
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

type Schemas = components['schemas'];

const vendor = 'Application/vnd.berthv1+json';

// connect returns a client that openapi-fetch makes of the document. It sends a request again
// while berth does not answer, as every request of this panel may be repeated.
function connect(url: string, token: string) {
  return createClient<paths>({
    baseUrl: url,
    headers: { Accept: vendor, Authorization: `Bearer ${token}` },
    fetch: async (request) => {
      for (;;) {
        const response = await fetch(request.clone()).catch(() => undefined);
        if (response !== undefined && response.status !== 503) return response;
        await pause(200);
      }
    },
  });
}

class APIError extends Error {
  constructor(readonly status: number, readonly code: Schemas['ErrorCode'], message: string) {
    super(message);
  }
}

// must returns the answer of a call, or throws its error.
async function must<T>(call: Promise<{ data?: T; error?: Schemas['Error']; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (data !== undefined) return data;
  throw new APIError(response.status, response.headers.get('X-Error-Code') as Schemas['ErrorCode'], error?.error ?? '');
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

// Follower reads the socket of a container. After a lost connection it resumes with
// since and epoch, so that it sees each transition once.
class Follower {
  readonly states: Schemas['StateMessage'][] = [];
  resumed = 0;
  console = '';
  closed: Schemas['SocketClose'] | undefined;
  private socket!: WebSocket;
  private seq = 0;
  private epoch: Schemas['Epoch'] | undefined;

  constructor(private readonly url: string, private readonly token: string, private readonly id: string) {
    this.connect();
  }

  private connect(): void {
    const query: paths['/ws/{id}']['get']['parameters']['query'] = { tail: 0, since: this.seq };
    if (this.epoch !== undefined) query.epoch = this.epoch;
    const text = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, String(v)]));
    const url = `${this.url.replace('http', 'ws')}/ws/${encodeURIComponent(this.id)}?${text}`;
    this.socket = new WebSocket(url, { headers: { Authorization: `Bearer ${this.token}` } });
    this.socket.on('message', (data) => this.read(JSON.parse(String(data)) as Schemas['SocketMessage']));
    this.socket.on('error', () => undefined); // close follows
    this.socket.on('close', (code, reason) => void this.reconnect(code, String(reason)));
  }

  private async reconnect(code: number, reason: string): Promise<void> {
    const end: Schemas['SocketClose']['code'] = 1000;
    if (code === end) {
      this.closed = { code, reason };
      return;
    }
    await pause(200);
    this.resumed++;
    this.connect();
  }

  private read(message: Schemas['SocketMessage']): void {
    switch (message.event) {
      case 'event':
        if (message.seq === undefined || message.seq <= this.seq) return; // the current state
        this.states.push(message);
        this.seen(message.seq, message.epoch);
        return;
      case 'daemon_message':
      case 'backup':
      case 'restore':
      case 'pull':
      case 'schedule':
      case 'transfer':
        if (message.seq !== undefined) this.seen(message.seq, message.epoch);
        return;
      case 'console':
        this.console += message.data;
        return;
      case 'gap':
        throw new Error(`transitions before ${message.data} are missing`);
      case 'logs':
      case 'stats':
        return;
      default:
        message satisfies never; // every message is handled
    }
  }

  private seen(seq: number, epoch: Schemas['Epoch'] | undefined): void {
    this.seq = seq;
    this.epoch = epoch;
  }

  send(message: Schemas['ClientMessage']): void {
    this.socket.send(JSON.stringify(message));
  }

  // reaches waits until the last states are these.
  async reaches(...states: Schemas['State'][]): Promise<void> {
    await until(`the states ${states.join(', ')} (there are ${this.states.map((s) => s.data).join(', ')})`, () => {
      const last = this.states.slice(-states.length).map((s) => s.data);
      return last.join() === states.join();
    });
    step(states.join(' '));
  }
}

async function until(what: string, done: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (await done()) return;
    await pause(100);
  }
  throw new Error(`timed out waiting for ${what}`);
}

function step(text: string): void {
  console.log(text);
}

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

async function main(): Promise<void> {
  const url = setting('BERTH_URL');
  const admin = connect(url, setting('BERTH_TOKEN'));
  const { token } = await must(admin.POST('/auth/tokens', { body: { ttl: '10m', scopes: ['admin'] } }));
  const berth = connect(url, token);

  const volume = await must(berth.POST('/volumes', { body: {} }));
  const binding: Schemas['Binding'] = { ip: '127.0.0.1', port: Number(setting('PORT')), protocol: 'tcp' };
  await must(berth.POST('/network/ports', { body: binding }));
  const id = 'panel';
  const created = await must(berth.POST('/containers', {
    body: {
      internal_id: id, volume_id: volume.volume_id, image: setting('IMAGE'), ports: [binding],
      install_script: 'echo installed > motd; sleep 1', limits: { memory: 64 * 2 ** 20, cpu: 0.5 },
      startup_command: "trap 'exit 0' TERM; cat motd; echo Done; while read line; do echo got $line; done",
      start_pattern: '^Done$', stop: { timeout: '10s' },
    },
  }));
  step(`created ${created.state}`);

  const named = { params: { path: { id } } };
  const follower = new Follower(url, token, id);
  await follower.reaches('installing', 'ready');
  await must(berth.POST('/containers/{id}/start', named));
  await follower.reaches('ready', 'starting', 'running');
  await must(berth.POST('/containers/{id}/command', { ...named, body: { command: 'one' } }));
  follower.send({ event: 'send_command', data: 'two' });
  await until('both commands', () => /got one[^]*got two|got two[^]*got one/.test(follower.console));
  step('commands');

  // berth is killed while it restarts the container.
  await must(berth.POST('/containers/{id}/restart', named));
  step('kill');
  const input = createInterface({ input: process.stdin });
  await new Promise((resolve) => input.once('line', resolve));
  input.close();
  await follower.reaches('running', 'stopping', 'exit', 'starting', 'running');
  if (follower.resumed === 0) throw new Error('the socket was never lost');

  await must(berth.POST('/containers/{id}/kill', named));
  await follower.reaches('running', 'exit');
  follower.send({ event: 'power', data: 'start' });
  await follower.reaches('exit', 'starting', 'running');
  await must(berth.POST('/containers/{id}/stop', named));
  await follower.reaches('running', 'stopping', 'exit');
  const state = await must(berth.GET('/containers/{id}', named));
  const installed = state.conditions.find((c) => c.type === 'Installed');
  if (state.power !== 'stopped' || installed?.reason !== 'Done') throw new Error(JSON.stringify(state));

  await must(berth.DELETE('/containers/{id}', { params: { path: { id }, query: { volume: true } } }));
  await until('the end of the socket', () => follower.closed !== undefined);
  await until('404', () => must(berth.GET('/containers/{id}', named)).then(
    () => false, (err: unknown) => err instanceof APIError && err.code === 'container_not_found'));
  await must(berth.DELETE('/network/ports/{ip}/{port}', { params: { path: { ip: binding.ip, port: binding.port } } }));

  // The socket has shown each stored transition once, over the kill.
  const stored = await must(berth.GET('/events', { params: { query: { since: 0 } } }));
  const all = stored.events.filter((e) => e.event === 'event' && e.container === id && e.data !== 'deleting');
  const seen = follower.states.filter((e) => e.data !== 'deleting');
  const text = (list: { seq?: number; data: string }[]) => list.map((e) => `${e.seq} ${e.data}`).join();
  if (text(all) !== text(seen)) throw new Error(`stored ${text(all)}, seen ${text(seen)}`);
  step('done');
}

await main();
