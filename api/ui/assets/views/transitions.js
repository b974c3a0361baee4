import { html } from './html.js';
import { clock } from '../core/format.js';
import { visible, visibleLines } from '../core/text.js';
import { usePage, useNow, useRead } from './context.js';

// transitions reads the last transitions of a container, newest first.
export const transitions = async (api, container, last) => (await api.get('events', { last, container })).events.reverse();

// who names the actor of a transition.
export function who(actor) {
  if (!actor) return '';
  const name = actor.name || actor.token_id?.slice(0, 8) || (actor.via === 'controller' ? 'berth' : '');
  return actor.on_behalf_of ? `${actor.on_behalf_of} (by ${name})` : name;
}

// Transitions are the stored changes of a container, the newest first.
export function Transitions({ id, container }) {
  const { api } = usePage();
  const now = useNow();
  const { data, error } = useRead(() => transitions(api, id, 200), [api, id, container.state, container.resource_version], 30);
  if (error && !data) return html`<p class="error">${error.message}</p>`;
  if (!data) return html`<p class="empty" role="status">Reading…</p>`;
  if (!data.length) return html`<p class="empty">Nothing is stored about this container.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Transitions"><table class="list cards">
    <thead><tr><th>Time</th><th>Change</th><th>Reason</th><th>By</th></tr></thead>
    <tbody>
      ${data.map(
        (e) => html`<tr key=${e.seq}>
          <td data-title="Time" class="nowrap">${clock(e.time, now)}</td>
          <td data-title="Change" class="long">${e.event === 'event' ? html`${e.from && html`<span class="quiet">${e.from} → </span>`}<b>${e.data}</b>` : visibleLines(e.data)}</td>
          <td data-title="Reason">${visible(e.reason)}${e.exit_code === undefined ? '' : ` (${e.exit_code})`}</td>
          <td data-title="By">${visible(who(e.actor))}</td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;
}
