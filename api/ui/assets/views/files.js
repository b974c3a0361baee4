import { html, useState } from './html.js';
import { link, path } from '../core/api.js';
import { bytes, clock } from '../core/format.js';
import { crumbs, isArchive, join } from '../core/files.js';
import { visible } from '../core/text.js';
import { usePage, useAction, useNow, useRead } from './context.js';
import { Editor } from './editor.js';
import { Uploads, useUploads } from './uploads.js';
import { Prompt } from './prompt.js';

function Crumbs({ at, go }) {
  return html`<nav class="crumbs" aria-label="Folder">
    ${crumbs(at).map(({ name, path: to }, i) => html`${i > 0 && ' / '}<button key=${to} class="link" aria-current=${to === at ? 'page' : undefined} onClick=${() => go(to)}>${visible(name)}</button>`)}
  </nav>`;
}

function Entry({ entry, now, open, actions }) {
  const folder = entry.type === 'directory';
  const name = visible(entry.name);
  return html`<tr>
    <td class="name"><button class="link" onClick=${open}><span aria-hidden="true">${folder ? '▸ ' : entry.symlink ? '↗ ' : ''}</span>${name}${folder ? '/' : ''}</button></td>
    <td class="number">${folder ? '' : bytes(entry.size)}</td>
    <td class="nowrap quiet">${clock(entry.modified_at * 1000, now)}</td>
    <td class="actions">
      ${actions.map(([title, act, danger]) => html`<button key=${title} class=${danger ? 'small danger' : 'small'} aria-label=${`${title} ${name}`} onClick=${act}>${title}</button>`)}
    </td>
  </tr>`;
}

// useVolume returns what can be done with the files of a volume.
function useVolume(volume, reload) {
  const { api, confirm, fail } = usePage();
  const [run, busy] = useAction();
  const base = `volumes/${path(volume)}`;
  const change = async (action) => {
    const done = await run(action);
    reload();
    return done;
  };
  const send = async (to, body, options) => {
    await api.post(`${base}/${to}`, body, options);
    reload();
  };
  return {
    busy,
    list: (at) => api.get(`${base}/files`, { path: at }),
    async download(at) {
      try {
        location.assign(await link(api, `${base}/files/content`, { path: at }));
      } catch (error) {
        fail(error);
      }
    },
    makeFolder: (at) => send('folders', { path: at }),
    makeFile: (at) =>
      send('files', { path: at, content: '' }, { headers: { 'If-None-Match': '*' } }).catch((error) => {
        throw error.status === 412 ? new Error('there is an entry with this name') : error;
      }),
    rename: (source, destination) => send('rename', { source, destination }),
    archive: (folder, name) =>
      change(() =>
        api.post(
          `${base}/compress`,
          { path: folder || undefined, paths: [name], format: 'tar.gz', output_name: name },
          { limit: 0 },
        ),
      ),
    extract: (at, destination) =>
      change(() => api.post(`${base}/decompress`, { archive_path: at, destination: destination || '.' }, { limit: 0 })),
    async remove(at, folder) {
      const text = folder ? 'The folder and everything in it are deleted.' : 'The file is deleted.';
      if (await confirm({ title: `Delete ${visible(at)}?`, text, action: 'Delete', danger: true })) {
        await change(() => api.remove(`${base}/files?${new URLSearchParams({ path: at })}`));
      }
    },
  };
}

// Files are the files of a container's volume.
export function Files({ container }) {
  return html`<${Browser} volume=${container.volume_id} />`;
}

// Browser shows and changes the files of a volume.
export function Browser({ volume }) {
  const { api, rights } = usePage();
  const now = useNow();
  const [at, setAt] = useState('');
  const [edited, setEdited] = useState('');
  const [prompt, setPrompt] = useState(null);
  const [over, setOver] = useState(false);
  const read = useRead(() => api.get(`volumes/${path(volume)}/files`, { path: at }), [api, volume, at], 15);
  const files = useVolume(volume, read.reload);
  const uploads = useUploads(volume, read.reload);
  const may = rights.has('files');

  const actionsOf = (entry) => {
    const target = join(at, entry.name);
    const folder = entry.type === 'directory';
    const list = folder ? [] : [['Download', () => files.download(target)]];
    if (!may) return list;
    if (isArchive(entry.name) && !folder) list.push(['Extract', () => files.extract(target, at)]);
    else list.push(['Archive', () => files.archive(at, entry.name)]);
    list.push([
      'Rename',
      () =>
        setPrompt({
          title: `Rename ${visible(entry.name)}`,
          value: entry.name,
          action: 'Rename',
          done: (name) => files.rename(target, join(at, name)),
        }),
    ]);
    list.push(['Delete', () => files.remove(target, folder), true]);
    return list;
  };
  async function newFile(name) {
    await files.makeFile(join(at, name));
    setEdited(join(at, name));
  }
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    uploads.add([...event.dataTransfer.files], at);
  };
  const drag = (on) => (event) => {
    event.preventDefault();
    setOver(on);
  };
  const target = may ? { onDragOver: drag(true), onDragLeave: drag(false), onDrop: drop } : {};

  return html`<div class=${`files ${over ? 'over' : ''}`} ...${target}>
    <div class="tools">
      <${Crumbs} at=${at} go=${setAt} />
      <span class="space"></span>
      ${
        may &&
        html`<label class="button">Upload<input type="file" multiple class="hidden-input" aria-label="Upload files" onChange=${(event) => uploads.add([...event.target.files], at)} /></label>
        <button onClick=${() => setPrompt({ title: 'New file', value: '', action: 'Create', done: newFile })}>New file</button>
        <button onClick=${() => setPrompt({ title: 'New folder', value: '', action: 'Create', done: (name) => files.makeFolder(join(at, name)) })}>New folder</button>`
      }
    </div>
    <${Uploads} uploads=${uploads} />
    ${files.busy && html`<p class="quiet" role="status">Working…</p>`}
    ${read.error && html`<p class="error">${read.error.message}</p>`}
    ${!read.data && !read.error && html`<p class="empty" role="status">Reading…</p>`}
    ${
      read.data &&
      html`<div class="scroll" tabindex="0" role="region" aria-label="Files"><table class="list">
      <thead><tr><th>Name</th><th class="number">Size</th><th>Changed</th><th><span class="unseen">Actions</span></th></tr></thead>
      <tbody>
        ${read.data.files.map((entry) => {
          const to = join(at, entry.name);
          return html`<${Entry} key=${entry.name} entry=${entry} now=${now} actions=${actionsOf(entry)}
            open=${() => ((entry.target_type ?? entry.type) === 'directory' ? setAt(to) : setEdited(to))} />`;
        })}
      </tbody>
    </table></div>`
    }
    ${read.data?.files.length === 0 && html`<p class="empty">The folder is empty.${may ? ' Drop files here to upload them.' : ''}</p>`}
    ${edited && html`<${Editor} volume=${volume} at=${edited} readOnly=${!may} close=${() => setEdited('')} onSaved=${read.reload} download=${() => files.download(edited)} />`}
    ${prompt && html`<${Prompt} prompt=${prompt} close=${() => setPrompt(null)} />`}
  </div>`;
}
