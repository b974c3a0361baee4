import test from 'node:test';
import assert from 'node:assert/strict';
import { maxLine, plain, spans, strip } from '../../../api/ui/assets/core/ansi.js';

const esc = '\u001b';
const drawn = (line) => spans(line).spans.map(({ text, classes }) => [text, classes]);

test('colours become classes', () => {
  for (const [line, want] of [
    ['plain', [['plain', '']]],
    [`${esc}[31mred${esc}[0m plain`, [['red', 'fg-red'], [' plain', '']]],
    [`${esc}[1;4;97;44mx`, [['x', 'fg-bright-white bg-blue bold underline']]],
    [`${esc}[38;5;9mx${esc}[39my`, [['x', 'fg-bright-red'], ['y', '']]],
    [`${esc}[38;5;196mx`, [['x', 'fg-bright-red']]],
    [`${esc}[48;2;0;200;0mx`, [['x', 'bg-bright-green']]],
    [`${esc}[38:5:2mx`, [['x', 'fg-green']]],
    [`${esc}[38;5mx`, [['x', '']]],
    [`${esc}[38;5;999mx`, [['x', '']]],
    [`${esc}[7;2;3mx${esc}[27;22;23my`, [['x', 'dim italic inverse'], ['y', '']]],
    ['\u009b32mx', [['x', 'fg-green']]],
  ]) {
    assert.deepEqual(drawn(line), want, JSON.stringify(line));
  }
}); // prettier-ignore

test('a style goes on in the next line', () => {
  const first = spans(`${esc}[31mred`);
  assert.deepEqual(spans('still', first.style).spans, [{ text: 'still', classes: 'fg-red' }]);
  assert.equal(spans(`${esc}[m`, first.style).style, plain);
});

test('every other sequence is dropped', () => {
  for (const line of [
    `${esc}[2Ja`, `${esc}[10;5Ha`, `${esc}]0;title\u0007a`, `${esc}]8;;http://evil/${esc}\\a`, `${esc}Pdcs${esc}\\a`,
    `${esc}(Ba`, `${esc}ca`, `${esc}[?25la`, `a${esc}`, `a${esc}[`, `a${esc}[31`, `a${esc}]0;unfinished`,
  ]) {
    assert.deepEqual(drawn(line).map(([text]) => text).join(''), 'a', JSON.stringify(line));
    assert.equal(strip(line), 'a');
  }
}); // prettier-ignore

test('what does harm is named', () => {
  assert.deepEqual(drawn('a\u202eb\u0007c\u0000d\u200be'), [['a⟨U+202E⟩b⟨U+0007⟩c⟨U+0000⟩d⟨U+200B⟩e', '']]);
  assert.deepEqual(drawn('<script>'), [['<script>', '']]);
  assert.deepEqual(drawn('\ud800x'), [['⟨U+D800⟩x', '']]);
  assert.deepEqual(drawn('a\tb'), [['a    b', '']]);
});

test('a carriage return overwrites, as in a terminal', () => {
  assert.deepEqual(drawn('10 %\r50 %\r100 %\r'), [['100 %', '']]);
  assert.deepEqual(drawn('windows\r'), [['windows', '']]);
});

test('a long line is cut', () => {
  const { spans: list } = spans('A'.repeat(1_000_000));
  assert.equal(list[0].text.length, maxLine);
  assert.equal(list[1].text, `… ${(1_000_000 - maxLine).toLocaleString('en')} more characters`);
});

test('hostile sequences cost no time', () => {
  const began = performance.now();
  for (const piece of [`${esc}[`, `${esc}]`, `${esc}[1;`, '\r', `${esc}[38;5;1m`, `${esc}[${';'.repeat(2000)}m`]) {
    spans(piece.repeat(Math.ceil(1_000_000 / piece.length)));
  }
  assert.ok(performance.now() - began < 5000);
});
