// delay returns the milliseconds before the attempt after `failures` failed ones: half a
// second, doubling to 10 s, with up to a fifth more, so that pages do not come at once.
export function delay(failures, random = Math.random) {
  const base = Math.min(500 * 2 ** Math.max(0, failures - 1), 10_000);
  return Math.round(base * (1 + random() / 5));
}
