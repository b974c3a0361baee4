import test from 'node:test';
import assert from 'node:assert/strict';
import { createMarks } from '../../../api/ui/assets/core/runs.js';
import { createScrollback, ofPage } from '../../../api/ui/assets/core/scrollback.js';

const time = (second) => new Date(second * 1000).toISOString();
const event = (seq, second, data, more) => ({ event: 'event', seq, data, time: time(second), ...more });
const start = (seq, second, more) => event(seq, second, 'starting', { actor: { via: 'controller' }, ...more });
const exit = (seq, second, more) => event(seq, second, 'exit', { from: 'running', reason: 'Exited', exit_code: 3, ...more });
const raw = (s) => s.lines.map((line) => line.raw);
const startText = 'Start by berth';
const exitText = 'Exited with code 3';

// inOrder requires that numbers of lines grow: what is drawn depends on it.
function inOrder(lines) {
  for (let i = 1; i < lines.length; i++) assert.ok(lines[i].number > lines[i - 1].number, `${lines[i - 1].number}, ${lines[i].number}`);
} // prettier-ignore

test('runs have marks with their causes', () => {
  const marks = createMarks();
  marks.add([
    event(1, 1, 'installing', { actor: { name: 'alice' } }), event(2, 2, 'ready', { from: 'installing' }), start(3, 3, { actor: { token_id: '0123456789' } }),
    event(4, 4, 'running'), event(5, 5, 'stopping'), exit(6, 6, { reason: 'Stopped', exit_code: 0 }), exit(7, 7, { from: 'starting', reason: 'PortTaken', exit_code: undefined }),
    event(8, 8, 'failed', { reason: 'ImageNotFound' }), { event: 'daemon_message', seq: 9, data: 'starting', time: time(9) },
  ]); // prettier-ignore
  assert.deepEqual(marks.waiting().map(({ text }) => text), [
    'Installation by alice', 'Installation is done', 'Start by 01234567', 'Exited with code 0: stopped on request',
    'Not started: a port is taken', 'Installation failed: the image does not exist',
  ]); // prettier-ignore
}); // prettier-ignore

test('marks are bounded, and each is kept once', () => {
  const marks = createMarks({ most: 3 });
  for (let i = 0; i < 10; i++) marks.add([start(i, i), start(i, i)]);
  assert.deepEqual(marks.waiting().map(({ key }) => key.split('/')[0]), ['7', '8', '9']);
}); // prettier-ignore

test('marks are between the lines of before, whatever comes first', () => {
  const transitions = [exit(2, 20), start(1, 10), start(3, 30)];
  for (const first of ['lines', 'marks']) {
    const s = createScrollback();
    if (first === 'marks') s.divide(transitions);
    s.load('a\nb\nc\n', [time(11), time(12), time(31)], true);
    if (first === 'lines') s.divide(transitions);
    s.divide(transitions);
    assert.deepEqual(raw(s), [startText, 'a', 'b', exitText, startText, 'c'], first);
    inOrder(s.lines);
  }
});

test('a mark above the first line waits for older lines', () => {
  const s = createScrollback();
  s.load('b\n', [time(12)], false);
  s.divide([start(1, 10), exit(2, 20)]);
  assert.deepEqual(raw(s), ['b', exitText]);
  const page = ofPage([{ time: time(5), data: 'x' }, { time: time(11), data: 'a' }], 1, s.marksBetween(5000, 12_000));
  assert.deepEqual(page.map((line) => line.raw), ['x', startText, 'a']);
  inOrder(page);
  assert.deepEqual(ofPage([], -3, s.marksBetween(-Infinity, 12_000)).map((line) => line.raw), [startText]);
}); // prettier-ignore

test('lines that come after a later mark are placed before it', () => {
  const s = createScrollback();
  s.load('', [], true);
  s.divide([start(1, 10), exit(2, 20)]);
  const before = s.revision;
  s.append('late\npart', time(15));
  assert.deepEqual(raw(s), [startText, 'late', 'part', exitText]);
  s.append(' of a line\n', time(15));
  s.append('next run\n', time(31));
  assert.deepEqual(raw(s), [startText, 'late', 'part of a line', exitText, 'next run']);
  assert.ok(s.revision > before, 'what was drawn is drawn again');
  inOrder(s.lines);
  const settled = s.revision;
  s.append('more\n', time(32));
  s.divide([exit(3, 40)]);
  assert.equal(s.revision, settled, 'what comes at the end costs nothing');
});

test('a mark without its cause receives it', () => {
  const s = createScrollback();
  s.load('a\n', [time(1)], true);
  s.divide([{ event: 'event', seq: 2, data: 'exit', time: time(2) }]);
  assert.deepEqual(raw(s), ['a', 'Exited']);
  s.divide([exit(2, 2)]);
  assert.deepEqual(raw(s), ['a', exitText]);
});
