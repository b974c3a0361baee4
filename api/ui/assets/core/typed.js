// The lines that a user has typed, as a shell keeps them.

// createTyped returns a history. older and newer return the text to show; draft is what
// stands in the input before the first step back.
export function createTyped(most = 100) {
  const list = [];
  let at = 0;
  let draft = '';
  return {
    add(line) {
      if (line && list.at(-1) !== line) list.push(line);
      if (list.length > most) list.shift();
      at = list.length;
    },
    older(current) {
      if (at === list.length) draft = current;
      at = Math.max(0, at - 1);
      return list[at] ?? current;
    },
    newer(current) {
      if (at >= list.length) return current;
      at += 1;
      return at === list.length ? draft : list[at];
    },
  };
}
