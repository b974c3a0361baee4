import { html, useEffect, useMemo, useRef, useState } from './html.js';
import { link, path } from '../core/api.js';
import { matches, ofPage } from '../core/scrollback.js';
import { createTyped } from '../core/typed.js';
import { usePage } from './context.js';
import { createLines } from './lines.js';

const pageSize = 500;
const searchPages = 20; // pages of the journal that one search reads

// above returns where the lines above the one with a number begin: the time that they are
// before, the number of the first one that is shown, and the time before which marks are
// not shown yet.
function above({ lines }, first) {
  const shown = lines.slice(
    Math.max(
      0,
      lines.findIndex(({ number }) => number === first),
    ),
  );
  const top = shown.find(({ kind, time }) => kind === 'output' && time);
  const until = Math.min(
    ...[shown[0], top]
      .filter(Boolean)
      .map(({ time }) => Date.parse(time))
      .filter(Number.isFinite),
  );
  return { before: top?.time, number: Math.floor(shown[0]?.number ?? 1), until };
}

// useHistory reads older lines from the journal, page by page, above the first line that is shown. It starts again if
// that line is not the one of the last page: the console removes lines at its top while it follows the end.
function useHistory(id, live) {
  const { api, fail } = usePage();
  const state = useMemo(() => ({ first: undefined, busy: false, done: false }), [id]); // and what above returns
  async function older(lines) {
    if (state.busy) return [];
    const first = lines.first();
    if (state.first !== first) Object.assign(state, above(live.scrollback, first), { first, done: false });
    if (state.done) return [];
    lines.freeze();
    state.busy = true;
    try {
      const page = await api.get(`containers/${path(id)}/logs`, { tail: pageSize, before: state.before });
      if (lines.first() !== first) return []; // it follows the end again
      state.done = !page.lines.length;
      const from = state.done ? -Infinity : Date.parse(page.lines[0].time);
      const list = ofPage(page.lines, state.number, live.scrollback.marksBetween(from, state.until));
      lines.prepend(list);
      state.first = lines.first();
      state.until = from;
      state.before = page.lines[0]?.time;
      state.number -= page.lines.length + 1; // the marks before the page have fractions
      return state.done ? [] : list;
    } catch (error) {
      fail(error);
      return [];
    } finally {
      state.busy = false;
    }
  }
  return older;
}

function Search({ lines, older }) {
  const [text, setText] = useState('');
  const [place, setPlace] = useState([0, 0]);
  const [note, setNote] = useState('');
  const change = (event) => {
    setText(event.target.value);
    setNote('');
    lines.current.search(event.target.value.toLowerCase());
    setPlace(event.target.value ? lines.current.reveal(-1) : [0, 0]);
  };
  // searchOlder searches the journal above the first line.
  async function searchOlder() {
    const needle = text.toLowerCase();
    for (let i = 0; i < searchPages; i++) {
      setNote('Searching…');
      const list = await older(lines.current);
      if (!list.length) return setNote('No older line contains it');
      if (list.some((line) => matches(line, needle))) {
        setNote('');
        setPlace(lines.current.reveal(-1));
        return;
      }
    }
    setNote(`Not in ${searchPages * pageSize} older lines`);
  }
  const onKey = (event) => {
    if (event.key === 'Enter') {
      event.preventDefault();
      setPlace(lines.current.reveal(event.shiftKey ? 1 : -1));
    }
    if (event.key === 'Escape' && text) {
      event.preventDefault();
      change({ target: { value: '' } });
    }
  };
  return html`<div class="search" role="search">
    <input type="search" placeholder="Search" aria-label="Search the console" value=${text} onInput=${change} onKeyDown=${onKey} />
    <span class="quiet" role="status">${note || (text ? `${place[0]} of ${place[1]}` : '')}</span>
    ${
      text &&
      html`<button aria-label="Previous match" onClick=${() => setPlace(lines.current.reveal(-1))}>↑</button>
      <button aria-label="Next match" onClick=${() => setPlace(lines.current.reveal(1))}>↓</button>
      <button onClick=${searchOlder}>Search older</button>`
    }
  </div>`;
}

function Input({ container, live, connection }) {
  const { fail } = usePage();
  const [text, setText] = useState('');
  const typed = useMemo(createTyped, []);
  const running = ['running', 'starting', 'stopping'].includes(container.state);
  const submit = (event) => {
    event.preventDefault();
    if (!text) return;
    if (!live.socket.send({ event: 'send_command', data: text })) {
      fail(new Error('The line was not sent: there is no connection'));
      return;
    }
    typed.add(text);
    setText('');
  };
  const onKey = (event) => {
    if (event.key === 'ArrowUp') setText(typed.older(text));
    else if (event.key === 'ArrowDown') setText(typed.newer(text));
    else return;
    event.preventDefault();
  };
  return html`<form class="input" onSubmit=${submit}>
    <label for="command" aria-hidden="true">›</label>
    <input id="command" value=${text} autocomplete="off" autocapitalize="off" spellcheck=${false} aria-label="Send a line to the console"
      placeholder=${running ? 'Send a line (↑ for earlier ones)' : 'The container does not run'} disabled=${!running}
      onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey} />
    <button disabled=${!running || !connection.online}>Send</button>
  </form>`;
}

// emptyText is what an empty console shows.
function emptyText({ state }, online) {
  if (!online) return 'The output appears when berth answers.';
  if (state === 'installing') return 'The installation has printed nothing yet.';
  return ['running', 'starting'].includes(state) ? 'The program has printed nothing yet.' : 'No output is stored.';
}

// Link shows whether new lines can come: from berth, and to berth from its engine.
function Link({ online, observed }) {
  if (!online) return html`<span class="pill bad"><i></i>Connecting again…</span>`;
  if (observed !== null) return html`<span class="pill warn"><i></i>Waiting for Docker</span>`;
  return html`<span class="pill ok"><i></i>Live</span>`;
}

// Console is the live output of a container, and its input.
export function Console({ id, container, live, connection }) {
  const { api, rights, fail, online, observed } = usePage();
  const box = useRef(null);
  const lines = useRef(null);
  const [follow, setFollow] = useState({ on: true, missing: 0 });
  const older = useHistory(id, live);

  useEffect(() => {
    const show = (on, missing) => setFollow((old) => (old.on === on && old.missing === missing ? old : { on, missing }));
    lines.current = createLines(box.current, live.scrollback, show, () => older(lines.current));
    const changed = (event) => {
      if (event === 'console' || event === 'logs' || event === 'daemon_message' || event === 'event') lines.current.schedule();
    };
    live.listeners.add(changed);
    return () => {
      live.listeners.delete(changed);
      lines.current.close();
    };
  }, [live]);

  const download = async () => {
    try {
      location.assign(await link(api, `containers/${path(id)}/logs/content`));
    } catch (error) {
      fail(error);
    }
  };

  return html`<div class="console">
    <div class="tools">
      <${Search} lines=${lines} older=${older} />
      <span class="space"></span>
      <${Link} online=${connection.online} observed=${online ? observed : null} />
      <button onClick=${() => older(lines.current)}>Older lines</button>
      <button onClick=${download}>Download</button>
    </div>
    <div class="output" ref=${box} tabindex="0" role="log" aria-live="off" aria-label=${`Console of ${id}`} data-empty=${emptyText(container, connection.online)}></div>
    ${
      !follow.on &&
      html`<button class="to-end" onClick=${() => lines.current.live()}>${follow.missing ? `${follow.missing.toLocaleString('en')} new lines ↓` : 'To the end ↓'}</button>`
    }
    ${rights.has('console') && html`<${Input} container=${container} live=${live} connection=${connection} />`}
  </div>`;
}
