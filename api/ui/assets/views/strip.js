import { html, useMemo } from './html.js';
import { fullest, missing } from '../core/disks.js';
import { bytes, duration, percent } from '../core/format.js';
import { counts } from '../core/table.js';
import { visible } from '../core/text.js';
import { explainNode } from '../core/why.js';
import { usePage, useNow, useRead } from './context.js';
import { Theme } from './theme.js';

// node returns GET /node, or nothing if this token or this berth has none.
async function node(api, rights) {
  if (!rights.node('read')) return null;
  return api.get('node').catch((error) => {
    if (error.status) return null;
    throw error;
  });
}

// Meter is a number with a bar.
export function Meter({ name, text, part, title }) {
  const known = Number.isFinite(part);
  const level = !known ? '' : part > 0.9 ? 'high' : part > 0.75 ? 'raised' : '';
  return html`<div class="meter" title=${title}>
    ${name && html`<span class="meter-name">${name}</span>`}
    ${
      known &&
      html`<span class="bar" aria-hidden="true"><span class=${level} style=${{ width: `${Math.min(100, part * 100)}%` }}></span></span>`
    }
    <span>${text}</span>
  </div>`;
}

// usage sums what the containers use.
function usage(list) {
  const sum = { cpu: 0, memory: 0, disk: 0 };
  for (const { stats } of list) {
    sum.cpu += stats?.cpu_usage ?? 0;
    sum.memory += stats?.memory_usage ?? 0;
    sum.disk += stats?.disk_usage ?? 0;
  }
  return sum;
}

function Meters({ node: n, sum }) {
  const disk = n?.disk && fullest(n.disk);
  const known = disk && disk.total > 0;
  const used = known ? disk.total - disk.free : sum.disk;
  return html`<div class="meters">
    <${Meter} name="CPU" part=${n ? sum.cpu / 100 / n.cpus : NaN}
      text=${n ? `${percent(sum.cpu / n.cpus)} of ${n.cpus} cores` : percent(sum.cpu)} title="What the containers use now" />
    <${Meter} name="Memory" part=${n ? sum.memory / n.memory : NaN}
      text=${n ? `${bytes(sum.memory)} of ${bytes(n.memory)}` : bytes(sum.memory)}
      title=${n ? `${bytes(n.allocated?.memory)} allocated by limits` : 'What the containers use now'} />
    <${Meter} name="Disk" part=${known ? used / disk.total : NaN}
      text=${known ? `${bytes(used)} of ${bytes(disk.total)}` : disk ? '–' : bytes(used)} title=${visible(disk?.title ?? 'The disk of the volumes')} />
  </div>`;
}

function Ready({ state, online, reasons }) {
  if (!online) return html`<span class="pill bad"><i></i>No connection</span>`;
  if (!state) return html`<span class="pill idle"><i></i>…</span>`;
  if (state.ready)
    return html`<span class=${`pill ${reasons.length ? 'warn' : 'ok'}`}><i></i>Ready${reasons.length ? ', but see below' : ''}</span>`;
  return html`<span class="pill bad" title=${state.reasons.join('\n')}><i></i>Not ready</span>`;
}

// Strip shows the node: what it is, how much is used, and whether it is ready.
export function Strip({ logout, ready, read }) {
  const { api, rights, self, list, online } = usePage();
  const now = useNow();
  const about = useRead(() => node(api, rights), [api], 15);
  const sum = useMemo(() => usage(list), [list]);
  const states = useMemo(() => Object.entries(counts(list)), [list]);
  const n = about.data;
  const reasons = [...(ready?.reasons ?? []), ...missing(n?.disk)];
  return html`<header class="strip">
    <div class="who">
      <h1><span class="logo" aria-hidden="true">b</span> ${visible(n?.node ?? 'berth')}</h1>
      <${Ready} state=${ready} online=${online} reasons=${reasons} />
    </div>
    ${
      n &&
      html`<p class="quiet facts">
      berth ${visible(n.version)} · up ${duration(((online ? now : (read ?? now)) - Date.parse(n.started_at)) / 1000)} · ${visible(n.engine?.name)} ${visible(n.engine?.version)} ·
      ${' '}${visible(n.os)} ${visible(n.arch)}
    </p>`
    }
    <div class="load">
      <${Meters} node=${n} sum=${sum} />
      <p class="states quiet">${states.map(([state, count]) => html`<span key=${state}><b>${count}</b> ${state} </span>`)}</p>
    </div>
    <div class="user">
      <span class="quiet" title=${`Scopes: ${self.scopes.join(', ')}`}>${visible(self.name || 'token')}${rights.has('admin') ? '' : ` (${self.scopes.join(', ')})`}</span>
      <${Theme} />
      ${api.token && html`<button onClick=${() => logout()}>Log out</button>`}
    </div>
    ${
      online &&
      reasons.length > 0 &&
      html`<div class="reasons" role="alert">
      ${reasons.map((reason) => html`<p key=${reason}>${visible(explainNode(reason))}</p>`)}
    </div>`
    }
  </header>`;
}
