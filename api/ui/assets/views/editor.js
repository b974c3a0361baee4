import { html, useEffect, useState } from './html.js';
import { path, query } from '../core/api.js';
import { compare } from '../core/diff.js';
import { bytes } from '../core/format.js';
import { decode, fromEditor, lineEnd, maxEdit, toEditor } from '../core/files.js';
import { visible } from '../core/text.js';
import { usePage, useAction } from './context.js';
import { Dialog } from './dialogs.js';

// open reads a text file: {text, end, tag}, or {reason, tag} why it cannot be edited here. tag
// is the ETag of the file.
async function open(api, at) {
  const response = await api.send('GET', at, { limit: 60_000 });
  const tag = response.headers.get('ETag');
  const size = Number(response.headers.get('Content-Length') ?? 0);
  if (size > maxEdit) {
    await response.body?.cancel();
    return { reason: `The file has ${bytes(size)}, more than can be edited here.`, tag };
  }
  const text = decode(await response.arrayBuffer());
  return text === undefined ? { reason: 'The file is not text.', tag } : { text: toEditor(text), end: lineEnd(text), tag };
}

// reopen is open for a file that may be deleted; its tag is empty then.
async function reopen(api, at) {
  try {
    return await open(api, at);
  } catch (error) {
    if (error.status !== 404) throw error;
    return { reason: 'The file was deleted.', tag: '' };
  }
}

// maxShown bounds the lines of a comparison that are shown.
const maxShown = 2000;

const signs = { old: '− ', new: '+ ', same: '  ', gap: '' };

// Conflict shows how a file was changed since it was opened, and asks what to do.
function Conflict({ at, opened, now, busy, close, take, replace }) {
  const lines = now.text === undefined ? [] : compare(opened, now.text);
  const rest = lines.length - maxShown;
  return html`<${Dialog} title="The file was changed" close=${close} wide>
    <form onSubmit=${(event) => event.preventDefault()}>
      <p>${visible(at)} was changed after you opened it, and is not saved.</p>
      ${now.reason && html`<p>${now.reason}</p>`}
      ${
        now.text !== undefined &&
        html`<pre class="diff" tabindex="0" role="region" aria-label="What was changed">${lines
          .slice(0, maxShown)
          .map(({ kind, text }, i) => html`<span key=${i} class=${kind}>${signs[kind]}${visible(text)}${'\n'}</span>`)}</pre>`
      }
      ${rest > 0 && html`<p class="quiet">${rest} more lines</p>`}
      <footer>
        <button type="button" autofocus onClick=${close}>Keep editing</button>
        <span class="space"></span>
        ${now.text !== undefined && html`<button type="button" disabled=${busy} onClick=${take}>Discard mine</button>`}
        <button type="button" class="danger" disabled=${busy} onClick=${replace}>Replace with mine</button>
      </footer>
    </form>
  <//>`;
}

// Editor shows and changes a text file.
export function Editor({ volume, at, readOnly, close, onSaved, download }) {
  const { api, say, confirm } = usePage();
  const [file, setFile] = useState(null);
  const [text, setText] = useState('');
  const [conflict, setConflict] = useState(null);
  const [run, busy] = useAction();
  const address = `volumes/${path(volume)}/files/content${query({ path: at })}`;
  useEffect(() => {
    open(api, address)
      .then((result) => {
        setFile(result);
        setText(result.text ?? '');
      })
      .catch((error) => setFile({ reason: error.message }));
  }, [at]);
  const changed = file?.text !== undefined && text !== file.text;

  // write replaces the version of the file with a tag.
  async function write(tag) {
    const response = await api.send('PUT', address, {
      raw: new Blob([fromEditor(text, file.end)]),
      limit: 60_000,
      headers: tag ? { 'If-Match': tag } : { 'If-None-Match': '*' },
    });
    setFile({ text, end: file.end, tag: response.headers.get('ETag') });
    setConflict(null);
    say('Saved');
    onSaved();
  }
  const save = (tag) =>
    run(async () => {
      try {
        await write(tag);
      } catch (error) {
        if (error.status !== 412) throw error;
        setConflict(await reopen(api, address));
      }
    });
  function submit(event) {
    event.preventDefault();
    save(file.tag);
  }
  function take() {
    setFile(conflict);
    setText(conflict.text);
    setConflict(null);
  }
  async function leave() {
    const ask = {
      title: 'Discard the changes?',
      text: 'The file was changed and is not saved.',
      action: 'Discard',
      danger: true,
    };
    if (!changed || (await confirm(ask))) close();
  }
  const onKey = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === 's') {
      event.preventDefault();
      if (changed && !readOnly && !busy) save(file.tag);
    }
  };
  return html`<${Dialog} title=${visible(at)} close=${leave} wide>
    <form onSubmit=${submit} onKeyDown=${onKey} class="editor">
      ${!file && html`<p role="status">Reading…</p>`}
      ${file?.reason && html`<p>${file.reason}</p>`}
      ${
        file?.text !== undefined &&
        html`<textarea aria-label=${`Content of ${visible(at)}`} spellcheck=${false} readonly=${readOnly} value=${text} autofocus onInput=${(event) => setText(event.target.value)}></textarea>`
      }
      <footer>
        <button type="button" onClick=${download}>Download</button>
        <span class="space"></span>
        <button type="button" onClick=${leave}>Close</button>
        ${!readOnly && file?.text !== undefined && html`<button class="primary" disabled=${busy || !changed}>Save</button>`}
      </footer>
    </form>
    ${
      conflict &&
      html`<${Conflict} at=${at} opened=${file.text} now=${conflict} busy=${busy} close=${() => setConflict(null)} take=${take}
        replace=${() => save(conflict.tag)} />`
    }
  <//>`;
}
