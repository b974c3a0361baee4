// Compares texts line by line.

// maxCells bounds the work for lines that differ: the product of the numbers of both texts.
const maxCells = 4_000_000;

// lcs returns the lengths of the longest common subsequences of the ends of two lists.
function lcs(before, after) {
  const width = after.length + 1;
  const length = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      length[i * width + j] =
        before[i] === after[j]
          ? length[(i + 1) * width + j + 1] + 1
          : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  return (i, j) => length[i * width + j];
}

// middle compares lists whose first and last lines differ.
function middle(before, after) {
  const all = (kind) => (text) => ({ kind, text });
  if (before.length * after.length > maxCells) return [...before.map(all('old')), ...after.map(all('new'))];
  const common = lcs(before, after);
  const list = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      list.push({ kind: 'same', text: before[i] });
      i += 1;
      j += 1;
    } else if (j === after.length || (i < before.length && common(i + 1, j) >= common(i, j + 1))) {
      list.push({ kind: 'old', text: before[i] });
      i += 1;
    } else {
      list.push({ kind: 'new', text: after[j] });
      j += 1;
    }
  }
  return list;
}

// compare returns the lines [{kind, text}] of two texts. The kind is 'old' for a line that
// only the first one has, 'new' for one that only the second one has, and 'same'; 'gap' stands
// for lines of both that are further than `context` lines from a difference.
export function compare(first, second, context = 3) {
  const [before, after] = [first.split('\n'), second.split('\n')];
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const same = (text) => ({ kind: 'same', text });
  const list = [
    ...before.slice(0, start).map(same),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
  const near = new Set();
  list.forEach(({ kind }, at) => {
    if (kind !== 'same') for (let i = at - context; i <= at + context; i += 1) near.add(i);
  });
  return list.flatMap((line, at) => {
    if (near.has(at)) return [line];
    return at === 0 || near.has(at - 1) ? [{ kind: 'gap', text: '…' }] : [];
  });
}
