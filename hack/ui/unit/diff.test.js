import test from 'node:test';
import assert from 'node:assert/strict';
import { compare } from '../../../api/ui/assets/core/diff.js';

const text = (first, second, context) =>
  compare(first, second, context).map(({ kind, text }) => ({ old: '-', new: '+', same: ' ', gap: '' })[kind] + text);

test('what was changed', () => {
  assert.deepEqual(text('a\nb\nc', 'a\nb\nc'), ['…']);
  assert.deepEqual(text('a\nb\nc', 'a\nx\nc'), [' a', '-b', '+x', ' c']);
  assert.deepEqual(text('', 'a'), ['-', '+a']);
  assert.deepEqual(text('a\nb', 'a\nb\nb'), [' a', ' b', '+b']);
  assert.deepEqual(text('a\nb\nb', 'a\nb'), [' a', ' b', '-b']);
  assert.deepEqual(text('1\n2\n3\n4\n5\n6\n7', '1\n2\n3\nx\n5\n6\n7', 1), ['…', ' 3', '-4', '+x', ' 5', '…']);
  assert.deepEqual(text('a\nb\nc\nd', 'b\nc\nx\nd'), ['-a', ' b', ' c', '+x', ' d']);
});

test('each comparison gives both texts', () => {
  let seed = 1;
  const random = (n) => (seed = (seed * 48_271) % 2_147_483_647) % n;
  for (let round = 0; round < 300; round += 1) {
    const lines = () => Array.from({ length: random(12) + 1 }, () => 'abc'[random(3)]).join('\n');
    const [first, second] = [lines(), lines()];
    const list = compare(first, second, 100).filter(({ kind }) => kind !== 'gap');
    if (first === second) continue;
    const of = (kind) =>
      list
        .filter((line) => line.kind === kind || line.kind === 'same')
        .map((line) => line.text)
        .join('\n');
    assert.equal(of('old'), first);
    assert.equal(of('new'), second);
  }
});

test('large texts take bounded work', () => {
  const lines = (letter) => Array.from({ length: 100_000 }, (_, i) => letter + i).join('\n');
  assert.equal(compare(lines('a'), lines('b')).length, 200_000);
});
