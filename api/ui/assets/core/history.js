// Reads the newest entries of a log that the API lists oldest first.

// tail returns the last `count` entries, newest first. read(since, limit) returns the
// entries after a number, oldest first; newest is the number of the last one.
export async function tail(read, newest, count) {
  for (let span = count; ; span *= 8) {
    const since = Math.max(0, newest - span);
    const list = await read(since, 10_000);
    if (list.length >= count || since === 0 || list.length === 10_000) return list.slice(-count).reverse();
  }
}

// transitions returns the last transitions of a container, newest first.
export async function transitions(api, container, count) {
  const { newest } = await api.get('events', { limit: 0 });
  return tail(async (since, limit) => (await api.get('events', { since, limit, container })).events, newest, count);
}

// findNewest returns the number of the last entry of a log whose numbers have no gaps,
// or 0. exists(since) reports the number of the first entry after `since`, or 0.
export async function findNewest(first) {
  let low = await first(0);
  if (!low) return 0;
  let step = 1;
  let high;
  for (;;) {
    const found = await first(low + step);
    if (!found) {
      high = low + step;
      break;
    }
    low = found;
    step *= 2;
  }
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const found = await first(middle);
    if (found) low = found;
    else high = middle;
  }
  return low;
}
