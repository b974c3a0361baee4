import test from 'node:test';
import assert from 'node:assert/strict';
import { all, APIError, createAPI, link, OfflineError, path, query } from '../../../api/ui/assets/core/api.js';
import { crumbs, decode, fromEditor, isArchive, join, lineEnd, parent, toEditor } from '../../../api/ui/assets/core/files.js';
import { age, bytes, clock, duration, percent, port, ports, until } from '../../../api/ui/assets/core/format.js';
import { addresses, parseCores, parseList, parsePorts, parseSize, reach } from '../../../api/ui/assets/core/input.js';
import { rightsOf } from '../../../api/ui/assets/core/rights.js';
import * as route from '../../../api/ui/assets/core/route.js';
import { createSeries } from '../../../api/ui/assets/core/series.js';
import { createSession, isToken } from '../../../api/ui/assets/core/session.js';
import { command, omissions } from '../../../api/ui/assets/core/spec.js';
import { shorten, visible, visibleLines } from '../../../api/ui/assets/core/text.js';
import { createTyped } from '../../../api/ui/assets/core/typed.js';

test('numbers and times', () => {
  assert.deepEqual([0, 1023, 1024, 1536, 150 * 1024, 2 ** 30, null].map(bytes), ['0 B', '1023 B', '1.0 KiB', '1.5 KiB', '150 KiB', '1.0 GiB', '–']);
  assert.deepEqual([0, 9.96, 37.5, undefined].map(percent), ['0.0 %', '10.0 %', '38 %', '–']);
  assert.deepEqual([0, 59, 60, 3700, 90_000, -5].map(duration), ['0 s', '59 s', '1 min', '1 h 1 min', '1 d 1 h', '0 s']);
  const now = Date.parse('2026-01-01T12:00:00Z');
  assert.equal(until('2026-01-01T12:00:12Z', now), 'in 12 s');
  assert.equal(until('2026-01-01T11:00:00Z', now), 'now');
  assert.equal(age('2026-01-01T10:30:00Z', now), '1 h');
  assert.equal(age(null, now), '–');
  assert.match(clock('2025-12-01T10:30:05Z', now), /^2025-12-01 \d\d:30:05$/);
  assert.equal(clock('x'), '–');
  assert.equal(port({ ip: '::1', port: 53, protocol: 'udp' }), '[::1]:53/udp');
}); // prettier-ignore

test('ports that follow each other are one', () => {
  const bind = (ip, number, more) => ({ ip, port: number, protocol: 'tcp', ...more });
  const list = Array.from({ length: 18 }, (_, i) => bind('127.0.0.1', 26001 + i));
  assert.deepEqual(ports(list), ['127.0.0.1:26001-26018/tcp']);
  assert.deepEqual(ports([]), []);
  assert.deepEqual(
    ports([bind('::1', 1), bind('::1', 2), bind('::1', 4), bind('::1', 5, { protocol: 'udp' }), bind('0.0.0.0', 6, { container_port: 80 }), bind('0.0.0.0', 7)]),
    ['[::1]:1-2/tcp', '[::1]:4/tcp', '[::1]:5/udp', '0.0.0.0:6/tcp → 80', '0.0.0.0:7/tcp'],
  );
}); // prettier-ignore

test('harmful characters are named', () => {
  assert.equal(visible('a\u202eb\nc\u2066'), 'a⟨U+202E⟩b⟨U+000A⟩c⟨U+2066⟩');
  assert.equal(visible(null), '');
  assert.equal(visible('日本 😀 é'), '日本 😀 é');
  assert.equal(visible('\u{e0041}'), '⟨U+E0041⟩');
  assert.equal(visibleLines('a\r\n\tb\u0000'), 'a\n\tb⟨U+0000⟩');
  assert.equal(shorten('x'.repeat(2000), 10), 'xxxxxxxxxx… (1,990 more characters)');
});

test('what people type', () => {
  assert.deepEqual(['', '0', '512 b', '1.5 GiB', '10g', '2 MB'].map(parseSize), [
    0,
    0,
    512,
    1.5 * 2 ** 30,
    10 * 2 ** 30,
    2 * 2 ** 20,
  ]);
  for (const text of ['much', '64', '64 x', '1 bi']) assert.throws(() => parseSize(text), /is not a size with a unit/);
  assert.deepEqual(parsePorts('25565, 127.0.0.1:80/udp [::1]:53', '0.0.0.0'), [
    { ip: '0.0.0.0', port: 25565, protocol: 'tcp' },
    { ip: '127.0.0.1', port: 80, protocol: 'udp' },
    { ip: '::1', port: 53, protocol: 'tcp' },
  ]);
  assert.throws(() => parsePorts('x:1'), /is not a port/);
  for (const text of ['0', '65536', '0.0.0.0:99999/tcp'])
    assert.throws(() => parsePorts(text, '0.0.0.0'), /ports are 1 to 65535/);
  assert.throws(() => parsePorts('25565'), /"25565" has no address: write 0\.0\.0\.0:25565/);
  assert.equal(parseCores(' 1.5 '), 1.5);
  for (const text of ['1,5', 'two', '-1']) assert.throws(() => parseCores(text), /is not a number of cores/);
  assert.deepEqual(addresses([{ ip: '10.0.0.5' }, { ip: '127.0.0.1' }, { ip: '10.0.0.5' }]), [
    '0.0.0.0',
    '127.0.0.1',
    '10.0.0.5',
  ]);
  assert.deepEqual(
    ['127.0.0.2', '::1', '0.0.0.0', '10.0.0.5'].map((ip) => reach(ip).split(' ')[0]),
    ['programs', 'programs', 'every', 'networks'],
  );
  assert.deepEqual(parseList(' a, b  c '), ['a', 'b', 'c']);
});

test('places in the address', () => {
  for (const place of [
    { view: 'containers', id: 'a/b c', tab: 'console' },
    { view: 'audit', id: '', tab: '' },
  ]) {
    assert.deepEqual(route.parse(route.format(place)), place);
  }
  assert.deepEqual(route.parse('#/<script>/%E0%A4%A'), { view: 'containers', id: '', tab: '' });
});

test('rights', () => {
  const admin = rightsOf({ scopes: ['admin'], containers: null });
  assert.ok(admin.has('files') && admin.node('network'));
  const narrow = rightsOf({ scopes: ['read', 'console'], containers: ['a'] });
  assert.deepEqual([narrow.has('read'), narrow.has('power'), narrow.node('read')], [true, false, false]);
});

test('a session keeps its token, also without storage', () => {
  const stored = new Map();
  const storage = {
    getItem: (k) => stored.get(k) ?? null,
    setItem: (k, v) => stored.set(k, v),
    removeItem: (k) => stored.delete(k),
  };
  createSession(storage).keep('x');
  assert.equal(createSession(storage).token, 'x');
  createSession(storage).keep('');
  assert.equal(stored.size, 0);
  const refused = createSession({
    getItem: () => {
      throw new Error('refused');
    },
  });
  refused.keep('y');
  assert.equal(refused.token, 'y');
  assert.ok(isToken(`berth_${'0'.repeat(32)}`) && !isToken('berth_x'));
});

test('samples become rates', () => {
  const s = createSeries(4);
  const add = (second, rx, more) => s.add({ time: new Date(second * 1000).toISOString(), cpu_usage: 1, memory_usage: 2, network_rx: rx, network_tx: 0, block_read: 0, block_write: 0, ...more });
  add(1, 100);
  add(2, 300);
  add(2, 900);
  add(3, 50);
  assert.deepEqual(s.data.rx, [null, 200, null], 'a counter that falls began anew');
  add(60, 100);
  assert.deepEqual(s.data.time.length, 4, 'bounded');
  assert.equal(s.data.cpu.at(-2), null, 'a gap is shown');
}); // prettier-ignore

test('typed lines', () => {
  const t = createTyped(2);
  for (const line of ['a', 'b', 'b', 'c']) t.add(line);
  assert.equal(t.older('draft'), 'c');
  assert.equal(t.older('c'), 'b');
  assert.equal(t.older('b'), 'b');
  assert.equal(t.newer('b'), 'c');
  assert.equal(t.newer('c'), 'draft');
  assert.equal(t.newer('draft'), 'draft');
});

test('paths and files', () => {
  assert.equal(join('', 'a'), 'a');
  assert.equal(parent('a/b/c'), 'a/b');
  assert.deepEqual(crumbs('a/b').map((c) => c.path), ['', 'a', 'a/b']);
  assert.ok(isArchive('x.TAR.gz') && !isArchive('x.txt'));
  assert.equal(decode(new TextEncoder().encode('\ufeffhé')), '\ufeffhé');
  assert.equal(decode(new Uint8Array([0xff, 0xfe])), undefined);
  assert.equal(decode(new Uint8Array([65, 0])), undefined);
  for (const text of ['a\r\nb\r\n', 'a\nb', '']) assert.equal(fromEditor(toEditor(text), lineEnd(text)), text);
  assert.equal(lineEnd('a\r\nb\n'), '\n');
}); // prettier-ignore

test('a copied specification is JSON in ASCII, with comments', () => {
  const spec = { internal_id: 'survival', startup_command: 'echo "a: b" # c\nEND', env: { 'a b': '\u202e😀' }, registry_auth: 'games.example' };
  const text = command(spec);
  assert.deepEqual(
    omissions(spec).map(({ what }) => what),
    ['the install script', "the registry's credentials", "the volume's files"],
  );
  assert.ok(text.split('\n').every((line) => !line.startsWith('#') || line.length <= 100));
  assert.match(text, /^berth apply -f - <<'END'\n(?:# [ -~]*\n)+\{[ -~\n]*\}\nEND\n$/);
  assert.match(text, /"a b": "\\u202e\\U0001f600"/);
  const json = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1).replace('\\U0001f600', '😀');
  assert.deepEqual(JSON.parse(json), spec);
}); // prettier-ignore

const respond = (status, body, headers) =>
  new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });

test('calls of the API', async () => {
  const seen = [];
  const answers = [];
  const fetch = async (url, options) => {
    seen.push([options.method, url.href, options.headers, options.body]);
    const next = answers.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  const api = createAPI({ base: 'http://node/berth/', token: 't', fetch });
  answers.push(respond(200, { a: 1 }));
  assert.deepEqual(await api.get(`containers/${path('a/b')}`, { limit: 0, none: undefined }), { a: 1 });
  assert.deepEqual(seen[0], ['GET', 'http://node/berth/containers/a%2Fb?limit=0', { Accept: 'Application/vnd.berthv1+json', Authorization: 'Bearer t' }, undefined]);
  answers.push(respond(409, { error: 'Container is not running' }, { 'X-Error-Code': 'not_running' }));
  await assert.rejects(api.post('x', { a: 1 }), (e) => e instanceof APIError && e.status === 409 && e.code === 'not_running' && e.message === 'Container is not running');
  assert.equal(seen[1][3], '{"a":1}');
  answers.push(respond(502, '<html>'));
  await assert.rejects(api.remove('x'), /status 502/);
  answers.push(new TypeError('Failed to fetch'));
  await assert.rejects(api.put('x', {}), OfflineError);
  answers.push(new TypeError('network changed'), respond(200, { again: 1 }));
  assert.deepEqual(await api.get('x'), { again: 1 });
  answers.push(respond(200, '{"cut'));
  await assert.rejects(api.get('x'), OfflineError);
  answers.push(respond(200, { list: [1], continue: 'c' }), respond(200, { list: [2] }));
  assert.deepEqual(await all(api, 'things', 'list', { limit: 1 }), [1, 2]);
  assert.match(seen.at(-1)[1], /continue=c/);
  answers.push(respond(200, { token: 'ticket' }));
  assert.equal(await link(api, 'x', { path: 'a b' }), 'http://node/berth/x?path=a+b&token=ticket');
  assert.equal(query({}), '');
}); // prettier-ignore
