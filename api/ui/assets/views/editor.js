import { html, useEffect, useState } from './html.js';
import { path, query } from '../core/api.js';
import { bytes } from '../core/format.js';
import { decode, fromEditor, lineEnd, maxEdit, toEditor } from '../core/files.js';
import { visible } from '../core/text.js';
import { usePage, useAction } from './context.js';
import { Dialog } from './dialogs.js';

// open reads a text file: {text}, or {reason} why it cannot be edited here.
async function open(api, at) {
  const response = await api.send('GET', at, { limit: 60_000 });
  const size = Number(response.headers.get('Content-Length') ?? 0);
  if (size > maxEdit) {
    await response.body?.cancel();
    return { reason: `The file has ${bytes(size)}, more than can be edited here.` };
  }
  const text = decode(await response.arrayBuffer());
  return text === undefined ? { reason: 'The file is not text.' } : { text: toEditor(text), end: lineEnd(text) };
}

// Editor shows and changes a text file.
export function Editor({ volume, at, readOnly, close, onSaved, download }) {
  const { api, say, confirm } = usePage();
  const [file, setFile] = useState(null);
  const [text, setText] = useState('');
  const [run, busy] = useAction();
  const base = `volumes/${path(volume)}`;
  useEffect(() => {
    open(api, `${base}/files/content${query({ path: at })}`)
      .then((result) => {
        setFile(result);
        setText(result.text ?? '');
      })
      .catch((error) => setFile({ reason: error.message }));
  }, [at]);
  const changed = file?.text !== undefined && text !== file.text;

  async function save(event) {
    event?.preventDefault();
    if (
      await run(() =>
        api.send('PUT', `${base}/files/content${query({ path: at })}`, {
          raw: new Blob([fromEditor(text, file.end)]),
          limit: 60_000,
        }),
      )
    ) {
      setFile({ text, end: file.end });
      say('Saved');
      onSaved();
    }
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
      if (changed && !readOnly) save();
    }
  };
  return html`<${Dialog} title=${visible(at)} close=${leave} wide>
    <form onSubmit=${save} onKeyDown=${onKey} class="editor">
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
  <//>`;
}
