import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from './html.js';
import { age, bytes, percent, ports, until } from '../core/format.js';
import { createFilter, rowsInView, sort } from '../core/table.js';
import { shorten, visible } from '../core/text.js';
import { exitText, explain, isOverLimit } from '../core/why.js';
import { usePage, useNow } from './context.js';
import { Create } from './create.js';

const headers = [
  ['state', 'State'],
  ['id', 'Container'],
  ['cpu', 'CPU'],
  ['memory', 'Memory'],
  ['disk', 'Disk'],
  ['ports', 'Ports'],
  ['restarts', 'Restarts'],
  ['retry', 'Next retry'],
  ['age', 'Age'],
];

// State is a state as a coloured word.
export function State({ container, now }) {
  const { observed } = usePage();
  const { tone, headline, unknown } = explain(container, now, observed);
  return html`<span class=${`pill ${unknown ? 'idle unknown' : tone}`} title=${headline}><i></i>${container.state}${unknown ? ' ?' : ''}</span>`;
}

function Head({ order, setOrder }) {
  return html`<div role="row" class="row head">
    ${headers.map(([name, title]) => {
      const active = order.column === name;
      const sorted = active ? (order.descending ? 'descending' : 'ascending') : 'none';
      return html`<div role="columnheader" class=${`c-${name}`} aria-sort=${sorted} key=${name}>
        <button onClick=${() => setOrder({ column: name, descending: active ? !order.descending : false })}>
          ${title}<span aria-hidden="true">${active ? (order.descending ? ' ↓' : ' ↑') : ''}</span>
        </button>
      </div>`;
    })}
  </div>`;
}

// retry is when a container is started again.
function retry(c, now, observed) {
  if (!c.next_retry_at) return '–';
  if (observed) return '?';
  return isOverLimit(c.message) ? 'when there is space' : until(c.next_retry_at, now);
}

// about is the second text of a row: what is wrong, or else the image. What a pull failed
// with comes before what was pulled.
const about = (c) =>
  shorten(
    c.message?.replace(/^pull (\S+): (.*)$/s, 'cannot pull: $2 ($1)') ||
      (c.state === 'exit' && c.exit_code ? exitText(c) : '') ||
      c.image,
    200,
  );

function Row({ c, index, current, open, now, observed, onOpen }) {
  const bound = ports(c.ports);
  const used = observed ? null : c.stats; // what a container uses is known while it is observed
  const none = used ? '' : 'none';
  return html`<div role="row" id=${`row-${c.internal_id}`} aria-rowindex=${index + 2} aria-selected=${current}
    class=${`row ${current ? 'current' : ''} ${open ? 'open' : ''}`} onClick=${() => onOpen(c.internal_id)}>
    <div role="gridcell" class="c-state"><${State} container=${c} now=${now} /></div>
    <div role="gridcell" class="c-id" title=${`${visible(c.internal_id)}\n${visible(about(c))}`}><b>${visible(c.internal_id)}</b> <span class="quiet">${visible(about(c))}</span></div>
    <div role="gridcell" class=${`c-cpu ${none}`}>${percent(used?.cpu_usage)}</div>
    <div role="gridcell" class=${`c-memory ${none}`}>${bytes(used?.memory_usage)}</div>
    <div role="gridcell" class=${`c-disk ${c.stats ? '' : 'none'}`}>${bytes(c.stats?.disk_usage)}</div>
    <div role="gridcell" class=${`c-ports ${bound.length ? '' : 'none'}`} title=${bound.join('\n')}>${bound.length > 1 && html`<small>+${bound.length - 1}</small> `}${bound[0] ?? '–'}</div>
    <div role="gridcell" class="c-restarts">${c.restart_count || '–'}</div>
    <div role="gridcell" class=${`c-retry ${c.next_retry_at ? '' : 'none'}`}>${retry(c, now, observed)}</div>
    <div role="gridcell" class="c-age" title=${observed ? 'When it was last observed' : ''}>${age(c.state_since, observed ?? now)}</div>
  </div>`;
}

// useView returns the part of a scrolled element that is visible.
function useView(element) {
  const [view, setView] = useState({ top: 0, height: 800, row: 38 });
  useLayoutEffect(() => {
    const box = element.current;
    const measure = () => {
      const row = Number.parseFloat(getComputedStyle(box).getPropertyValue('--row')) || 38;
      setView({ top: box.scrollTop, height: box.clientHeight, row });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    box.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      box.removeEventListener('scroll', measure);
    };
  }, []);
  return view;
}

// Grid is the table: it has only the rows that are visible.
function Grid({ list, order, setOrder, current, setCurrent, open, onOpen, total }) {
  const box = useRef(null);
  const view = useView(box);
  const now = useNow();
  const { observed } = usePage();
  const { first, last } = rowsInView(list.length, { ...view, top: view.top - view.row });

  const show = (index) => {
    const element = box.current;
    const head = element.querySelector('.head').offsetHeight;
    const top = index * view.row;
    if (top < element.scrollTop) element.scrollTop = top;
    if (top + view.row + head > element.scrollTop + element.clientHeight) {
      element.scrollTop = top + view.row + head - element.clientHeight;
    }
  };
  const move = (index) => {
    if (!list.length) return;
    const next = Math.max(0, Math.min(list.length - 1, index));
    setCurrent(list[next].internal_id);
    show(next);
  };
  const onKey = (event) => {
    if (event.target !== box.current || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = list.findIndex((c) => c.internal_id === current);
    const page = Math.max(1, Math.floor(view.height / view.row) - 2);
    const steps = {
      ArrowDown: at + 1,
      j: at + 1,
      ArrowUp: at - 1,
      k: at - 1,
      Home: 0,
      End: list.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    };
    if (event.key in steps) move(steps[event.key]);
    else if (event.key === 'Enter' && at >= 0) onOpen(current);
    else return;
    event.preventDefault();
  };

  return html`<div ref=${box} class="grid" role="grid" tabindex="0" aria-label="Containers" aria-rowcount=${list.length + 1}
    aria-activedescendant=${list.slice(first, last).some((c) => c.internal_id === current) ? `row-${current}` : undefined} onKeyDown=${onKey}>
    <div role="rowgroup" class="sticky"><${Head} order=${order} setOrder=${setOrder} /></div>
    <div role="rowgroup" class="rows" style=${{ height: `${list.length * view.row}px` }}>
      <div role="presentation" style=${{ transform: `translateY(${first * view.row}px)` }}>
        ${list.slice(first, last).map(
          (c, i) =>
            html`<${Row} key=${c.internal_id} c=${c} index=${first + i} now=${now} observed=${observed} current=${c.internal_id === current}
                open=${c.internal_id === open} onOpen=${onOpen} />`,
        )}
      </div>
    </div>
    ${!list.length && html`<div role="row" class="empty"><div role="gridcell">${total ? 'No container matches the filter.' : 'There are no containers yet.'}</div></div>`}
  </div>`;
}

// Containers is the table of containers, with its filter.
export function Containers({ state, selected }) {
  const { go, rights, online } = usePage();
  const [filter, setFilter] = useState('');
  const [order, setOrder] = useState({ column: 'state', descending: false });
  const [current, setCurrent] = useState(selected);
  const [creating, setCreating] = useState(false);
  const input = useRef(null);
  const keep = useMemo(createFilter, []);
  const list = useMemo(() => sort(keep(state.list, filter), order.column, order.descending), [state.list, filter, order]);
  const open = useCallback(
    (id) => {
      setCurrent(id);
      go({ view: 'containers', id });
    },
    [go],
  );

  useEffect(() => {
    const onKey = (event) => {
      const typing = event.target.closest?.('input, textarea, select, dialog');
      if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        input.current?.focus();
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);

  const onFilterKey = (event) => {
    const grid = event.target.closest('main').querySelector('.grid');
    if (event.key === 'Escape') setFilter('');
    if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault();
      if (!list.some((c) => c.internal_id === current) && list.length) setCurrent(list[0].internal_id);
      grid.focus();
    }
  };

  return html`<section class="containers">
    <div class="tools">
      <input ref=${input} type="search" class="filter" placeholder="Filter: name, state:exit, port:25565, !word  ( / )"
        aria-label="Filter the containers" aria-keyshortcuts="/" value=${filter} onInput=${(event) => setFilter(event.target.value)} onKeyDown=${onFilterKey} />
      <span class="quiet" role="status">${filter ? `${list.length} of ${state.list.length}` : ''}</span>
      ${rights.node('admin') && html`<button class="primary" disabled=${!online} onClick=${() => setCreating(true)}>New container</button>`}
    </div>
    ${state.error && html`<p class="error">${state.error.message}</p>`}
    ${
      !state.loaded
        ? html`<p class="empty" role="status">Reading the containers…</p>`
        : html`<${Grid} list=${list} total=${state.list.length} order=${order} setOrder=${setOrder} current=${current}
          setCurrent=${setCurrent} open=${selected} onOpen=${open} />`
    }
    ${creating && html`<${Create} close=${() => setCreating(false)} />`}
  </section>`;
}
