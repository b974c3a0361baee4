// Filters and sorts the containers of a list. All functions are pure.
import { port } from './format.js';
import { urgency } from './why.js';

// text returns everything of a container that a filter matches, in lower case.
function text(c) {
  const labels = Object.entries(c.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return [c.internal_id, c.image, c.state, c.volume_id, c.message ?? '', ...c.ports.map(port), ...labels]
    .join('\n')
    .toLowerCase();
}

// fields are the names that a word of a filter may begin with: state:running.
const fields = {
  state: (c) => c.state,
  id: (c) => c.internal_id,
  image: (c) => c.image,
  port: (c) => c.ports.map(port).join(' '),
  volume: (c) => c.volume_id,
  label: (c) =>
    Object.entries(c.labels ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
};

// parse returns the words of a filter as functions of a container and its text.
function parse(filter) {
  return filter
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => {
      const not = word.length > 1 && word.startsWith('!');
      const plain = not ? word.slice(1) : word;
      const [, name, value] = /^([a-z]+):(.*)$/.exec(plain) ?? [];
      const field = fields[name];
      const matches = field ? (c) => field(c).toLowerCase().includes(value) : (c, all) => all.includes(plain);
      return not ? (c, all) => !matches(c, all) : matches;
    });
}

// createFilter returns a function that keeps the containers which match every word of a
// filter. It remembers the text of each container, which does not change.
export function createFilter() {
  const texts = new WeakMap();
  const textOf = (c) => {
    let known = texts.get(c);
    if (known === undefined) texts.set(c, (known = text(c)));
    return known;
  };
  return (list, filter) => {
    const words = parse(filter);
    return words.length ? list.filter((c) => words.every((word) => word(c, textOf(c)))) : list;
  };
}

// order is the rank of each state among containers of the same urgency: what needs a
// person comes first.
const order = ['failed', 'exit', 'stopping', 'deleting', 'installing', 'starting', 'running', 'ready'];

const time = (text) => (text ? Date.parse(text) : Infinity);

// columns are the values that a list is sorted by.
export const columns = {
  state: (c) => urgency(c) * order.length + order.indexOf(c.state),
  id: (c) => c.internal_id,
  cpu: (c) => c.stats?.cpu_usage ?? -1,
  memory: (c) => c.stats?.memory_usage ?? -1,
  disk: (c) => c.stats?.disk_usage ?? -1,
  ports: (c) => c.ports[0]?.port ?? 65_536,
  restarts: (c) => c.restart_count,
  retry: (c) => time(c.next_retry_at),
  age: (c) => -time(c.state_since),
};

// sort returns the list by a column; containers that are equal in it stay by their ids.
export function sort(list, column, descending) {
  const value = columns[column] ?? columns.id;
  const sign = descending ? -1 : 1;
  const keyed = list.map((c) => [value(c), c]);
  keyed.sort(([a, x], [b, y]) => {
    if (a !== b) return (a < b ? -1 : 1) * sign;
    return x.internal_id < y.internal_id ? -1 : x.internal_id > y.internal_id ? 1 : 0;
  });
  return keyed.map(([, c]) => c);
}

// window returns which rows a viewport shows, with some more on each side.
export function rowsInView(total, { top, height, row, margin = 8 }) {
  const first = Math.max(0, Math.min(total, Math.floor(top / row) - margin));
  const last = Math.min(total, Math.ceil((top + height) / row) + margin);
  return { first, last: Math.max(first, last) };
}

// counts returns the number of containers in each state.
export function counts(list) {
  const map = {};
  for (const c of list) map[c.state] = (map[c.state] ?? 0) + 1;
  return map;
}
