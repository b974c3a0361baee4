import test from 'node:test';
import assert from 'node:assert/strict';
import { maxLine } from '../../../api/ui/assets/core/ansi.js';
import { createScrollback, draw, mark, matches, ofPage } from '../../../api/ui/assets/core/scrollback.js';

const raw = (s) => s.lines.map((line) => line.raw);

test('output becomes lines, also in parts', () => {
  const s = createScrollback();
  s.append('one\ntw', 't1');
  s.append('o\n\nthree', 't2');
  assert.deepEqual(raw(s), ['one', 'two', '', 'three']);
  assert.deepEqual(s.lines.map((line) => line.number), [1, 2, 3, 4]);
  assert.deepEqual(s.lines.map((line) => line.time), ['t1', 't1', 't2', 't2']);
  s.append('\n', 't3');
  s.append('four\n', 't3');
  assert.deepEqual(raw(s), ['one', 'two', '', 'three', 'four']);
}); // prettier-ignore

test('each line has its time', () => {
  const s = createScrollback();
  s.append('a\nb\n', ['t1', 't2']);
  assert.deepEqual(s.lines.map((line) => line.time), ['t1', 't2']);
}); // prettier-ignore

test('memory is bounded', () => {
  const s = createScrollback({ maxLines: 100 });
  for (let i = 0; i < 1000; i++) s.append(`line ${i}\n`);
  assert.equal(s.lines.length, 100);
  assert.equal(s.dropped, 900);
  assert.equal(s.lines[0].number, 901);
  for (let i = 0; i < 100; i++) s.append('x'.repeat(10_000));
  assert.equal(s.lines.at(-1).raw.length, maxLine);
  assert.equal(s.lines.at(-1).hidden, 1_000_000 - maxLine);
  assert.match(draw(s.lines.at(-1)).at(-1).text, /995,904 more characters/);
});

test('a grown line is drawn again', () => {
  const s = createScrollback();
  s.append('half');
  assert.equal(draw(s.lines[0])[0].text, 'half');
  s.append(' whole\n');
  assert.equal(draw(s.lines[0])[0].text, 'half whole');
});

test('a style goes on in the next line, a notice has none', () => {
  const s = createScrollback();
  s.append('\u001b[31mred\n');
  s.notice('berth was restarted', 't');
  s.append('still red\n');
  assert.deepEqual(s.lines.map((line) => [line.kind, draw(line)[0].classes]), [['output', 'fg-red'], ['notice', ''], ['output', 'fg-red']]);
}); // prettier-ignore

test('a page of the journal comes before the lines that are there', () => {
  const page = ofPage([{ time: 't1', data: '\u001b[32ma' }, { time: 't2', data: 'b' }], 10);
  assert.deepEqual(page.map((line) => line.number), [8, 9]);
  assert.deepEqual(draw(page[1])[0], { text: 'b', classes: 'fg-green' });
  assert.equal(ofPage([{ time: 't', data: 'x'.repeat(10_000) }], 2)[0].hidden, 10_000 - maxLine);
}); // prettier-ignore

test('a search sees no colours, and marks each place', () => {
  const [line] = ofPage([{ time: 't', data: 'Hel\u001b[31mlo hello' }], 2);
  assert.equal(matches(line, 'hello'), true);
  assert.equal(matches(line, '31m'), false);
  assert.deepEqual(mark([{ text: 'aXbxc', classes: 'fg-red' }], 'x'), [
    { text: 'a', classes: 'fg-red' },
    { text: 'X', classes: 'fg-red', hit: true },
    { text: 'b', classes: 'fg-red' },
    { text: 'x', classes: 'fg-red', hit: true },
    { text: 'c', classes: 'fg-red' },
  ]);
});
