// Marks between the runs of a console, from the transitions of its container.

// causes are the reasons of an exit, in words.
const causes = {
  Stopped: 'stopped on request',
  Killed: 'killed on request',
  OutOfMemory: 'out of memory',
  StartTimedOut: 'no line matched the start pattern in time',
  Removed: 'removed from outside of berth',
  NotStarted: 'the start was cancelled',
  MachineLost: 'its machine was lost',
  HostRestarted: 'the host was restarted',
  EngineRestarted: 'the engine was restarted',
  PortTaken: 'a port is taken',
  NoRoom: 'no machine has room',
  VolumeMissing: 'the directory of the volume is missing',
  BadCommand: 'the command cannot be executed',
  HostFault: 'the host cannot start containers',
  InvalidSpec: 'the engine refuses the specification',
  MountRefused: 'a mount is refused',
  ImageNotFound: 'the image does not exist',
  ImageDenied: 'the registry refuses the credentials',
  ImageForOtherMachine: 'the image is for another machine',
  ImageInvalid: 'the engine refuses the reference of the image',
  TimedOut: 'it took longer than install_timeout',
  ExitCode: '',
  Exited: '',
};

// byWhom names who caused a transition, unless it was berth itself.
function byWhom({ actor }) {
  if (!actor || actor.via === 'controller') return ' by berth';
  const name = actor.on_behalf_of || actor.name || actor.token_id?.slice(0, 8);
  return name ? ` by ${name}` : '';
}

function ended(words, e) {
  const cause = causes[e.reason] ?? e.reason ?? '';
  const code = e.exit_code === undefined || e.exit_code === null ? '' : ` with code ${e.exit_code}`;
  return `${words}${code}${cause && `: ${cause}`}`;
}

// textOf returns what a mark shows, or nothing for a transition that is no mark.
function textOf(e) {
  if (e.event !== 'event') return '';
  if (e.data === 'installing') return `Installation${byWhom(e)}`;
  if (e.data === 'ready') return e.from === 'installing' ? 'Installation is done' : '';
  if (e.data === 'failed') return ended('Installation failed', e);
  if (e.data === 'starting') return `Start${byWhom(e)}`;
  if (e.data === 'exit') return ended(e.from === 'starting' && e.exit_code === undefined ? 'Not started' : 'Exited', e);
  return '';
}

// markOf returns the mark {key, at, time, text} of a transition, or undefined. at is its
// time in ms.
function markOf(e) {
  const text = textOf(e);
  const at = Date.parse(e.time);
  return text && Number.isFinite(at) ? { key: `${e.seq}/${at}`, at, time: e.time, text } : undefined;
}

// lineOf returns a mark as a line of a console.
export const lineOf = (mark, number, style) => ({
  number, time: mark.time, at: mark.at, key: mark.key, kind: 'mark', raw: mark.text, hidden: 0, style,
}); // prettier-ignore

const timeOf = (line) => line.at ?? Date.parse(line.time);

// placeOf returns the index in lines at which a mark belongs: behind the last line that is
// not later. Lines without a time do not count.
export function placeOf(lines, mark) {
  let at = lines.length;
  while (at > 0 && !(timeOf(lines[at - 1]) <= mark.at)) at -= 1;
  return at;
}

// isLater reports whether a mark is later than a line with this time.
export const isLater = (mark, time) => mark.at > Date.parse(time);

const inOrder = (list) => list.sort((a, b) => a.at - b.at);

// createMarks keeps the last marks of a console, each once.
export function createMarks({ most = 500 } = {}) {
  const known = new Map(); // by their keys, in the order of arrival
  return {
    // add adds the marks of transitions. It returns those that were known with a text
    // that says less.
    add(transitions) {
      const reworded = [];
      for (const mark of transitions.map(markOf).filter(Boolean)) {
        const old = known.get(mark.key);
        if (!old) known.set(mark.key, mark);
        else if (mark.text.length > old.text.length) reworded.push(Object.assign(old, { text: mark.text }));
      }
      for (const key of [...known.keys()].slice(0, Math.max(0, known.size - most))) known.delete(key);
      return reworded;
    },
    // waiting returns the marks that have no place yet, in order.
    waiting: () => inOrder([...known.values()].filter(({ placed }) => !placed)),
    // between returns the marks from a time on and before another one, in order.
    between: (from, to) => inOrder([...known.values()].filter(({ at }) => at >= from && at < to)),
  };
}
