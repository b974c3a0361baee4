import { html, useEffect, useRef, useState } from './html.js';
import { path } from '../core/api.js';
import { command, omissions } from '../core/spec.js';
import { createSeries } from '../core/series.js';
import { createScrollback } from '../core/scrollback.js';
import { openSocket } from '../core/socket.js';
import { format } from '../core/route.js';
import { visible } from '../core/text.js';
import { usePage, useNow, useRead } from './context.js';
import { State } from './containers.js';
import { Power } from './power.js';
import { Brief, Overview } from './overview.js';
import { Console } from './console.js';
import { Transitions, transitions } from './transitions.js';
import { Plots } from './plots.js';
import { Files } from './files.js';
import { Backups } from './backups.js';
import { Schedules } from './schedules.js';
import { Transfers } from './transfers.js';
import { Settings } from './settings.js';
import { Share } from './share.js';

const tabs = [
  { name: 'why', title: 'Why', pane: Overview },
  { name: 'console', title: 'Console', pane: Console },
  { name: 'plots', title: 'Plots', pane: Plots },
  { name: 'transitions', title: 'Transitions', pane: Transitions },
  { name: 'files', title: 'Files', pane: Files },
  { name: 'backups', title: 'Backups', pane: Backups },
  { name: 'schedules', title: 'Schedules', pane: Schedules },
  { name: 'transfers', title: 'Transfers', pane: Transfers },
  { name: 'settings', title: 'Settings', pane: Settings },
];

const tail = 500; // lines of before
const marked = 200; // transitions that mark them

// useLive follows one container on its socket. What it returns stays the same object;
// pieces register for changes. A socket that opens while the page has no connection is
// news for the page, which waits longer between its attempts.
function useLive(id, onChange) {
  const { api, online } = usePage();
  const lost = useRef(false);
  lost.current = !online;
  const [live] = useState(() => ({
    scrollback: createScrollback(),
    series: createSeries(),
    listeners: new Set(),
    socket: null,
  }));
  const [state, setState] = useState({ online: false, reason: '' });
  useEffect(() => {
    const { scrollback, series, listeners } = live;
    let asked = false; // for the transitions of before: from this message on, the socket has those that follow
    const handlers = {
      logs(m) {
        scrollback.load(m.data, m.times ?? [], (m.times?.length ?? 0) < tail && m.data.length < 1_000_000);
        if (!asked) transitions(api, id, marked).then(mark, () => {}); // the lines are complete without marks
        asked = true;
      },
      console: (m) => scrollback.append(m.data, m.times ?? m.time),
      stats: (m) => series.add(m),
      gap: onChange,
      event(m) {
        scrollback.divide([m]);
        onChange();
      },
      daemon_message(m) {
        if (m.expires_at && !m.seq) return; // about the token of the socket
        scrollback.notice(m.data, m.time);
        if (m.seq) onChange();
      },
    };
    const mark = (list) => {
      scrollback.divide(list);
      for (const listener of listeners) listener('event');
    };
    live.socket = openSocket({
      api,
      tail,
      container: id,
      onState(next) {
        setState(next);
        if (next.online && lost.current) onChange();
      },
      onMessage(message) {
        handlers[message.event]?.(message);
        for (const listener of listeners) listener(message.event);
      },
    });
    return () => live.socket.close();
  }, [id]);
  return [live, state];
}

// copy puts a text into the clipboard, which a page without TLS may not have.
async function copy(text, message, { say, fail }) {
  try {
    await navigator.clipboard.writeText(text);
    say(message);
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (done) say(message);
    else fail(new Error('The browser does not allow this page to copy'));
  }
}

// copySpec copies the command that applies a container.
async function copySpec(id, { api, say, fail }) {
  try {
    const spec = await api.get(`containers/${path(id)}/spec`);
    const without = omissions(spec).map(({ what }) => what);
    await copy(command(spec), `Copied. Not included: ${without.join('; ')}.`, { say, fail });
  } catch (error) {
    fail(error);
  }
}

function Tabs({ id, current }) {
  const onKey = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const list = [...event.currentTarget.querySelectorAll('a')];
    const next = list[(list.indexOf(document.activeElement) + step + list.length) % list.length];
    next.focus();
    next.click();
  };
  return html`<nav class="tabs small" role="tablist" aria-label=${`Views of ${id}`} onKeyDown=${onKey}>
    ${tabs.map(
      ({ name, title }) =>
        html`<a role="tab" id=${`tab-${name}`} key=${name} href=${format({ view: 'containers', id, tab: name })} aria-selected=${name === current}
          aria-controls="drawer-pane" tabindex=${name === current ? 0 : -1}>${title}</a>`,
    )}
  </nav>`;
}

// Drawer is everything about one container.
export function Drawer({ id, tab }) {
  const { api, rights, go, say, fail, refresh, list } = usePage();
  const [sharing, setSharing] = useState(false);
  const now = useNow();
  const element = useRef(null);
  const summary = list.find((c) => c.internal_id === id);
  const read = useRead(() => api.get(`containers/${path(id)}`), [api, id], 5);
  const change = () => {
    read.reload();
    refresh();
  };
  const latest = useRef(change);
  latest.current = change;
  const [live, connection] = useLive(id, () => latest.current());
  const container = read.data ?? summary;
  const missing = read.error?.status === 404;
  const current = tabs.find(({ name }) => name === tab) ?? tabs[0];
  const close = () => {
    go({ view: 'containers' });
    document.querySelector('.grid')?.focus();
  };

  useEffect(() => element.current?.focus(), []);
  const onKey = (event) => {
    if (event.key === 'Escape' && !event.defaultPrevented && !event.target.closest('dialog')) close();
  };

  return html`<aside class="drawer" ref=${element} tabindex="-1" aria-label=${`Container ${id}`} onKeyDown=${onKey}>
    <header>
      <h2>${visible(id)}</h2>
      ${container && !missing && html`<${State} container=${container} now=${now} />`}
      <span class="space"></span>
      ${read.data && html`<button onClick=${() => copySpec(id, { api, say, fail })}>Copy as <code>berth apply</code></button>`}
      ${read.data && rights.has('admin') && html`<button onClick=${() => setSharing(true)}>Share…</button>`}
      ${sharing && html`<${Share} id=${id} close=${() => setSharing(false)} />`}
      <button class="icon" aria-label="Close" onClick=${close}>✕</button>
      ${container && html`<p class="quiet image">${visible(container.image)}</p>`}
    </header>
    ${
      missing
        ? html`<p class="empty" role="status">There is no container with this name, or this token may not see it.</p>`
        : html`${container && html`<${Power} container=${container} onChange=${change} />`}
          <${Tabs} id=${id} current=${current.name} />
          ${container && current.name !== 'why' && html`<${Brief} container=${container} />`}
          ${connection.reason && html`<p class="error" role="status">${connection.reason}</p>`}
          <div class="pane" id="drawer-pane" role="tabpanel" aria-labelledby=${`tab-${current.name}`} tabindex="0">
            ${container && html`<${current.pane} key=${current.name} id=${id} container=${container} live=${live} connection=${connection} />`}
          </div>`
    }
  </aside>`;
}
