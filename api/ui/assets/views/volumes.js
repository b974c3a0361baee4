import { html, useState } from './html.js';
import { all, path } from '../core/api.js';
import { volumeOf } from '../core/create.js';
import { bytes, clock } from '../core/format.js';
import { parseSize } from '../core/input.js';
import { format } from '../core/route.js';
import { visible } from '../core/text.js';
import { usePage, useAction, useNow, useRead } from './context.js';
import { Browser } from './files.js';
import { Storage } from './form.js';
import { List } from './list.js';
import { Meter } from './strip.js';
import { Prompt } from './prompt.js';

const title = (v) => v.name || v.volume_id.slice(0, 8);

function Usage({ v }) {
  if (!v.size_limit) return bytes(v.size);
  return html`<${Meter} name="" text=${`${bytes(v.size)} of ${bytes(v.size_limit)}`} part=${v.size / v.size_limit} />`;
}

// Volumes are the volumes of the node, and the files of one of them.
export function Volumes({ place }) {
  const { api, rights, confirm, say, go } = usePage();
  const now = useNow();
  const [prompt, setPrompt] = useState(null);
  const [run] = useAction();
  const { data, error, reload } = useRead(() => all(api, 'volumes', 'volumes'), [api], 10);

  async function create(text, { storage }) {
    await api.post('volumes', volumeOf(text.trim() && parseSize(text), storage));
    say('The volume is created');
    reload();
  }
  async function remove(v) {
    const ask = {
      title: `Delete volume ${visible(title(v))}?`,
      text: 'All its files are deleted.',
      action: 'Delete',
      danger: true,
      expect: title(v),
    };
    if ((await confirm(ask)) && (await run(() => api.remove(`volumes/${path(v.volume_id)}`)))) say('Delete: requested');
    reload();
  }
  if (place.id) {
    const v = data?.find((one) => one.volume_id === place.id);
    return html`<section class="plain">
      <div class="tools"><a class="button" href=${format({ view: 'volumes' })}>← Volumes</a> <h2>${visible(v ? title(v) : place.id)}</h2></div>
      <${Browser} volume=${place.id} />
    </section>`;
  }
  const columns = [
    { title: 'Volume', cell: (v) => html`<button class="link" onClick=${() => go({ view: 'volumes', id: v.volume_id })}>${visible(title(v))}</button> <small class="quiet">${v.name ? v.volume_id.slice(0, 8) : ''}</small> ${v.ready ? '' : html`<span class="pill bad" title=${visible(v.message)}><i></i>Not ready</span>`}` },
    { title: 'Used by', cell: (v) => v.used_by.map((id) => html`<a key=${id} href=${format({ view: 'containers', id })}>${visible(id)}</a> `) },
    { title: 'Size', cell: (v) => html`<${Usage} v=${v} />` },
    data?.some((v) => v.storage) && { title: 'Storage', cell: (v) => visible(v.storage) },
    data?.some((v) => Object.keys(v.labels).length) && { title: 'Labels', cell: (v) => visible(Object.entries(v.labels).map(([name, value]) => `${name}=${value}`).join(', ')), kind: 'long' },
    { title: 'Created', cell: (v) => clock(v.created_at * 1000, now), kind: 'nowrap' },
    { title: '', kind: 'actions', cell: (v) => rights.has('admin') && html`<button class="small danger" disabled=${v.used_by.length > 0} title=${v.used_by.length ? 'A container uses it' : ''} aria-label=${`Delete ${visible(title(v))}`} onClick=${() => remove(v)}>Delete</button>` },
  ].filter(Boolean); // prettier-ignore
  return html`<${List} name="volumes" items=${data} error=${error} columns=${columns} keyOf=${(v) => v.volume_id} empty="There are no volumes yet."
      text=${(v) => `${v.name} ${v.volume_id} ${v.storage} ${v.used_by.join(' ')} ${Object.entries(v.labels).flat().join(' ')}`}
      tools=${rights.node('admin') && html`<button class="primary" onClick=${() => setPrompt({ title: 'New volume', label: 'Size limit', value: '10 GiB', action: 'Create', more: { values: { storage: '' }, fields: Storage }, done: create })}>New volume</button>`} />
    ${prompt && html`<${Prompt} prompt=${prompt} close=${() => setPrompt(null)} />`}`;
}
