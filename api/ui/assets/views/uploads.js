import { html, useState } from './html.js';
import { bytes } from '../core/format.js';
import { join } from '../core/files.js';
import { upload } from '../core/upload.js';
import { visible } from '../core/text.js';
import { usePage } from './context.js';

// useUploads sends files one after the other, and shows their progress.
export function useUploads(volume, onDone) {
  const { api } = usePage();
  const [list, setList] = useState([]);
  const change = (key, changes) => setList((old) => old.map((one) => (one.key === key ? { ...one, ...changes } : one)));

  async function add(files, folder) {
    const fresh = files.map((file) => ({
      key: crypto.getRandomValues(new Uint32Array(2)).join('-'),
      file,
      sent: 0,
      state: 'waiting',
      error: '',
    }));
    setList((old) => [...old.filter((one) => one.state !== 'done'), ...fresh]);
    for (const { key, file } of fresh) {
      const job = upload({ api, volume, path: join(folder, file.name), file, onProgress: (sent) => change(key, { sent }) });
      change(key, { state: 'running', cancel: job.cancel });
      try {
        await job.done;
        change(key, { state: 'done', sent: file.size });
      } catch (error) {
        change(key, { state: 'failed', error: error.message });
      }
      onDone();
    }
  }
  const clear = () => setList((old) => old.filter((one) => one.state === 'running' || one.state === 'waiting'));
  return { list, add, clear };
}

// Uploads shows files on their way.
export function Uploads({ uploads }) {
  if (!uploads.list.length) return null;
  const active = uploads.list.some((one) => one.state === 'running' || one.state === 'waiting');
  return html`<div class="uploads">
    ${uploads.list.map(
      ({ key, file, sent, state, error, cancel }) => html`<div key=${key}>
        <span>${visible(file.name)}</span>
        <progress max=${file.size || 1} value=${state === 'done' ? file.size || 1 : sent} aria-label=${`Upload of ${visible(file.name)}`}></progress>
        <span class="quiet" role="status">${error || (state === 'done' ? 'uploaded' : `${bytes(sent)} of ${bytes(file.size)}`)}</span>
        ${state === 'running' && html`<button class="small" onClick=${cancel}>Cancel</button>`}
      </div>`,
    )}
    ${!active && html`<button class="small" onClick=${uploads.clear}>Close</button>`}
  </div>`;
}
