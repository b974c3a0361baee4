import { html, useEffect, useRef, useState } from './html.js';
import { link, path } from '../core/api.js';
import { bytes, clock, percent } from '../core/format.js';
import { visible } from '../core/text.js';
import { usePage, useAction, useNow, useRead } from './context.js';
import { Policy } from './policy.js';
import { Prompt } from './prompt.js';

// read returns the backups of a volume, or null if this berth makes none.
async function read(api, volume) {
  try {
    return (await api.get(`volumes/${path(volume)}/backups`)).backups;
  } catch (error) {
    if (error.code === 'route_not_found') return null;
    throw error;
  }
}

function Progress({ of, name }) {
  if (!of?.total) return html`<progress aria-label=${name}></progress>`;
  const part = Math.min(100, (of.bytes / of.total) * 100);
  return html`<progress max="100" value=${part} aria-label=${name}></progress> <span class="quiet">${percent(part)}</span>`;
}

function Restores({ list, now }) {
  return list.map(
    (r) => html`<tr key=${r.restore_id} class="sub">
      <td colspan="2">Restore (${r.mode}) ${clock(r.started_at, now)}</td>
      <td><span class=${`pill ${{ completed: 'ok', failed: 'bad' }[r.state] ?? 'busy'}`}><i></i>${r.state}</span></td>
      <td colspan="2" class="long">${visible(r.message)}</td>
    </tr>`,
  );
}

const remedy =
  "Check the target in berth's configuration (backups) and its log on the host: the directory must be writable, a server must answer. Then make a new backup.";

// useResult reports how a backup ends whose id it is given.
function useResult(list) {
  const { say, fail } = usePage();
  const made = useRef(null);
  useEffect(() => {
    const b = list?.find((one) => one.backup_id === made.current);
    if (b?.state === 'completed') say('The backup is complete');
    else if (b?.state === 'failed') fail(new Error(`The backup failed: ${visible(b.message)}`));
    else return;
    made.current = null;
  }, [list]);
  return made;
}

function Backup({ b, now, rights, act }) {
  const label = b.name || b.backup_id.slice(0, 8);
  const running = b.state === 'pending' || b.state === 'running';
  return html`<tr>
      <td class="long"><b>${visible(label)}</b> <span class="quiet">${b.target}</span></td>
      <td class="nowrap">${clock(b.created_at * 1000, now)}</td>
      <td><span class=${`pill ${{ completed: 'ok', failed: 'bad' }[b.state] ?? 'busy'}`}><i></i>${b.state}</span></td>
      <td class="long">${running ? html`<${Progress} of=${b.progress} name=${`Progress of ${label}`} />` : b.state === 'failed' ? html`${visible(b.message)}. <p class="remedy"><b>What to do:</b> ${remedy}</p>` : bytes(b.size)}
        ${b.skipped?.length > 0 && html`<details><summary>${b.skipped_total ?? b.skipped.length} skipped</summary>${b.skipped.slice(0, 50).map((s) => html`<div>${visible(s.path)}: ${s.reason}</div>`)}</details>`}</td>
      <td class="actions">
        ${b.state === 'completed' && html`<button class="small" aria-label=${`Download ${label}`} onClick=${() => act.download(b)}>Download</button>`}
        ${b.state === 'completed' && rights.has('admin') && html`<button class="small" aria-label=${`Restore ${label}`} onClick=${() => act.restore(b)}>Restore</button>`}
        ${rights.has('files') && html`<button class="small danger" aria-label=${`Delete ${label}`} onClick=${() => act.remove(b)}>Delete</button>`}
      </td>
    </tr>
    <${Restores} list=${(b.restores ?? []).slice(-2)} now=${now} />`;
}

// Backups are the backups of a container's volume.
export function Backups({ container }) {
  const { api, rights, confirm, say, fail } = usePage();
  const now = useNow();
  const volume = container.volume_id;
  const { data, error, reload } = useRead(() => read(api, volume), [api, volume], 2);
  const made = useResult(data);
  const [prompt, setPrompt] = useState(null);
  const [run, busy] = useAction();
  const change = async (action, text) => {
    if (await run(action)) say(text);
    reload();
  };
  const act = {
    async make(name) {
      made.current = (await api.post(`volumes/${path(volume)}/backups`, { name })).backup_id;
      say('The backup has started');
      reload();
    },
    async restore(b) {
      const answer = await confirm({
        title: `Restore ${visible(b.name || b.backup_id.slice(0, 8))}?`,
        text: 'Everything in the volume is replaced by the content of the backup. Changes since then are lost. Make a backup first if you may need it.',
        action: 'Restore', danger: true, expect: container.internal_id, option: 'Stop the container first, and start it again afterwards',
      }); // prettier-ignore
      if (answer)
        await change(
          () => api.post(`backups/${path(b.backup_id)}/restore`, { mode: 'replace', stop: answer.checked }),
          'The restore has started',
        );
    },
    async remove(b) {
      const text = b.state === 'completed' ? 'The backup is deleted for good.' : 'The backup is cancelled and deleted.';
      if (await confirm({ title: 'Delete the backup?', text, action: 'Delete', danger: true })) {
        await change(() => api.remove(`backups/${path(b.backup_id)}`), 'Delete: requested');
      }
    },
    async download(b) {
      try {
        location.assign(await link(api, `backups/${path(b.backup_id)}/content`));
      } catch (failure) {
        fail(failure);
      }
    },
  };
  if (error && data === undefined) return html`<p class="error">${error.message}</p>`;
  if (data === undefined) return html`<p class="empty" role="status">Reading…</p>`;
  if (data === null) return html`<p class="empty">This berth makes no backups.</p>`;
  return html`<div class="backups">
    <div class="tools"><${Policy} volume=${volume} /><span class="space"></span>
      ${rights.has('files') && html`<button class="primary" disabled=${busy} onClick=${() => setPrompt({ title: 'New backup', label: 'Name', value: 'before a change', action: 'Make a backup', done: act.make })}>New backup</button>`}
    </div>
    ${
      data.length
        ? html`<div class="scroll" tabindex="0" role="region" aria-label="Backups"><table class="list">
          <thead><tr><th>Backup</th><th>Made</th><th>State</th><th>Size or reason</th><th><span class="unseen">Actions</span></th></tr></thead>
          <tbody>${data.map((b) => html`<${Backup} key=${b.backup_id} b=${b} now=${now} rights=${rights} act=${act} />`)}</tbody>
        </table></div>`
        : html`<p class="empty">The volume has no backup yet.</p>`
    }
    ${prompt && html`<${Prompt} prompt=${prompt} close=${() => setPrompt(null)} />`}
  </div>`;
}
