import { html, useMemo, useState } from './html.js';

const most = 300; // rows that a list shows; the filter finds the others

// List is a table with a filter. columns are {title, cell, number}; text returns what the
// filter matches.
export function List({ name, items, error, columns, text, keyOf, tools, empty }) {
  const [filter, setFilter] = useState('');
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = useMemo(
    () => (items ?? []).filter((item) => words.every((word) => text(item).toLowerCase().includes(word))),
    [items, filter],
  );
  return html`<section class="plain">
    <div class="tools">
      <input type="search" class="filter" placeholder="Filter" aria-label=${`Filter the ${name}`} value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span class="quiet" role="status">${filter ? `${found.length} of ${items?.length ?? 0}` : ''}</span>
      <span class="space"></span>${tools}
    </div>
    ${error && html`<p class="error">${error.message}</p>`}
    ${!items && !error && html`<p class="empty" role="status">Reading…</p>`}
    ${
      items &&
      html`<div class="scroll" tabindex="0" role="region" aria-label=${name}><table class="list cards">
      <thead><tr>${columns.map((c) => html`<th key=${c.title} class=${c.number ? 'number' : ''}>${c.title || html`<span class="unseen">Actions</span>`}</th>`)}</tr></thead>
      <tbody>${found.slice(0, most).map((item) => html`<tr key=${keyOf(item)}>${columns.map((c) => html`<td key=${c.title} data-title=${c.title} class=${[c.number && 'number', c.kind].filter(Boolean).join(' ')}>${c.cell(item)}</td>`)}</tr>`)}</tbody>
    </table></div>`
    }
    ${items && !found.length && html`<p class="empty">${items.length ? 'Nothing matches the filter.' : empty}</p>`}
    ${found.length > most && html`<p class="quiet">${found.length - most} more: use the filter.</p>`}
  </section>`;
}
