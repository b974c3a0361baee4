import { html } from './html.js';
import { bytes, clock, percent, ports } from '../core/format.js';
import { draw } from '../core/scrollback.js';
import { shorten, visible, visibleLines } from '../core/text.js';
import { explain, isFault } from '../core/why.js';
import { usePage, useNow } from './context.js';

// Last is the end of the console: what a program that has failed printed last.
function Last({ lines }) {
  return html`<p>Its last output:</p>
    <div class="last" tabindex="0" role="region" aria-label="Last output">
      ${lines.map(
        (line) =>
          html`<div key=${line.number}>${draw(line).map(({ text, classes }) => html`<span class=${classes}>${text}</span>`)}</div>`,
      )}
    </div>`;
}

// lastOutput returns the last lines that the program printed.
const lastOutput = (lines) =>
  lines
    .slice(-100)
    .filter((line) => line.kind === 'output')
    .slice(-8);

// Brief is the reason of a state above the other views of a container: where the person
// looks. It is empty for a container that does what is requested.
export function Brief({ container }) {
  const now = useNow();
  const why = explain(container, now, usePage().observed);
  if (why.tone === 'ok' || why.tone === 'idle') return null;
  const [detail] = why.details;
  return html`<section class=${`why brief ${why.tone}`} aria-label="Reason">
    <h3>${why.headline}</h3>
    ${detail && html`<p class="detail">${visibleLines(shorten(detail, 300))}</p>`}
    ${why.next && html`<p>${why.next}</p>`}
    ${why.remedies.slice(0, 1).map((text) => html`<p class="remedy"><b>What to do:</b> ${text}</p>`)}
  </section>`;
}

// Why explains the state in sentences.
function Why({ container, live, now }) {
  const why = explain(container, now, usePage().observed);
  const last =
    container.state !== 'running' && ['bad', 'busy', 'warn'].includes(why.tone) ? lastOutput(live.scrollback.lines) : [];
  return html`<section class=${`why ${why.tone}`} aria-label="Why">
    <h3>${why.headline}</h3>
    ${why.details.map((text) => html`<p class="detail">${visibleLines(text)}</p>`)}
    ${last.length > 0 && html`<${Last} lines=${last} />`}
    ${why.next && html`<p>${why.next}</p>`}
    ${why.deferred && html`<p class="deferred">${visible(why.deferred)}</p>`}
    ${why.remedies.map((text) => html`<p class="remedy"><b>What to do:</b> ${text}</p>`)}
  </section>`;
}

function Conditions({ list, now }) {
  return html`<section>
    <h3>Conditions</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="Conditions"><table class="list cards">
      <thead><tr><th>Condition</th><th>Status</th><th>Reason</th><th>Message</th><th>Since</th></tr></thead>
      <tbody>
        ${list.map(
          (c) => html`<tr key=${c.type}>
            <td data-title="Condition">${c.type}</td>
            <td data-title="Status"><span class=${`pill ${isFault(c) ? 'warn' : c.status === 'Unknown' ? 'idle' : 'ok'}`}><i></i>${c.status}</span></td>
            <td data-title="Reason">${c.reason}</td>
            <td data-title="Message" class="long">${visibleLines(c.message)}</td>
            <td data-title="Since" class="nowrap">${clock(c.since, now)}</td>
          </tr>`,
        )}
      </tbody>
    </table></div>
  </section>`;
}

// facts returns what a container is. The entry of a list has only a part of it.
function facts(c) {
  const limits = c.limits ?? {};
  const entry = [
    ['Power', `${c.power} (desired)`],
    ['Ports', ports(c.ports).join(', ')],
    ['Restarts', String(c.restart_count)],
    ['Volume', c.volume_id],
  ];
  if (!c.conditions) return entry;
  return [
    ...entry,
    ['Memory', limits.memory ? `at most ${bytes(limits.memory)}` : 'no limit'],
    ['CPU', limits.cpu ? `at most ${limits.cpu} cores` : 'no limit'],
    ['Disk', limits.disk ? `at most ${bytes(limits.disk)}` : 'no limit'],
    ['Startup command', c.startup_command || 'that of the image'],
    ['Start pattern', c.start_pattern || 'none: runs at once'],
    ['Restart policy', c.restart_policy?.mode],
    ['Container id', c.container_id?.slice(0, 12)],
    ...(c.machine ? [['Machine', c.machine]] : []),
    ['Labels', Object.entries(c.labels ?? {}).map(([name, value]) => `${name}=${value}`).join(', ')],
    ['Environment', Object.keys(c.env ?? {}).join(', ')],
  ].filter(([, value]) => value); // prettier-ignore
}

// Overview is why a container is in its state, and what it is.
export function Overview({ container, live }) {
  const now = useNow();
  const { observed } = usePage();
  const { cpu, memory } = live.series.data;
  const used = [
    [
      'Now',
      cpu.length && container.state === 'running' && observed === null
        ? `${percent(cpu.at(-1))} CPU, ${bytes(memory.at(-1))} memory`
        : '',
    ],
    ...facts(container),
  ];
  return html`<div class="overview">
    <${Why} container=${container} live=${live} now=${now} />
    <dl class="facts">
      ${used.filter(([, value]) => value).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${name === 'Startup command' ? visibleLines(value) : visible(value)}</dd></div>`)}
    </dl>
    ${container.conditions && html`<${Conditions} list=${container.conditions} now=${now} />`}
  </div>`;
}
