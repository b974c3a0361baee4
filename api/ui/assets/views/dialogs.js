import { createContext, html, useCallback, useContext, useEffect, useMemo, useRef, useState } from './html.js';
import { visible } from '../core/text.js';

// Messages are the messages of the page. A dialog shows them too: it covers the page.
export const Messages = createContext(null);

// Dialog is a modal window. It closes with Escape, and gives the focus back.
export function Dialog({ title, close, children, wide }) {
  const element = useRef(null);
  const messages = useContext(Messages);
  useEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    return () => before?.focus?.();
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    close();
  };
  return html`<dialog ref=${element} class=${wide ? 'wide' : ''} aria-label=${title} onCancel=${cancel}>
    <header><h2>${title}</h2>
      <button class="icon" aria-label="Close" onClick=${close}>✕</button></header>
    ${children}
    ${messages}
  </dialog>`;
}

// Confirm asks for a decision. With `expect` the user has to type a word.
function Confirm({ ask, answer }) {
  const [typed, setTyped] = useState('');
  const [checked, setChecked] = useState(false);
  const ready = !ask.expect || typed === ask.expect;
  const submit = (event) => {
    event.preventDefault();
    if (ready) answer({ checked });
  };
  return html`<${Dialog} title=${ask.title} close=${() => answer(null)}>
    <form onSubmit=${submit}>
      <p>${ask.text}</p>
      ${
        ask.option &&
        html`<label class="check">
        <input type="checkbox" checked=${checked} onChange=${(event) => setChecked(event.target.checked)} />
        ${ask.option}
      </label>`
      }
      ${
        ask.expect &&
        html`<label>Type <code>${visible(ask.expect)}</code> to go on
        <input value=${typed} autocomplete="off" onInput=${(event) => setTyped(event.target.value)} /></label>`
      }
      <footer>
        <button type="button" onClick=${() => answer(null)}>Cancel</button>
        <button class=${ask.danger ? 'danger' : 'primary'} disabled=${!ready} autofocus=${!ask.expect}>${ask.action}</button>
      </footer>
    </form>
  <//>`;
}

// useDialogs returns the messages, the open question, and functions that open them: say,
// fail, clear, which removes the errors, and confirm, which resolves to {checked}, or to
// null.
export function useDialogs() {
  const [list, setList] = useState([]);
  const [ask, setAsk] = useState(null);

  const number = useRef(0);
  const show = useCallback((tone, text) => {
    const message = { key: (number.current += 1), tone, text };
    setList((old) => [...old.slice(-3), message]);
    setTimeout(() => setList((old) => old.filter((m) => m !== message)), tone === 'bad' ? 12_000 : 4000);
  }, []);
  const say = useCallback((text) => show('ok', text), []);
  const fail = useCallback((error) => show('bad', error.message ?? String(error)), []);
  const clear = useCallback(() => setList((old) => old.filter((m) => m.tone !== 'bad')), []);
  const confirm = useCallback((question) => new Promise((resolve) => setAsk({ ...question, resolve })), []);

  const answer = (result) => {
    ask.resolve(result);
    setAsk(null);
  };
  const close = (message) => setList((old) => old.filter((m) => m !== message));
  const messages = useMemo(
    () => html`<div class="messages" role="log" aria-label="Messages">
      ${list.map(
        (m) => html`<div key=${m.key} class=${`message ${m.tone}`} role=${m.tone === 'bad' ? 'alert' : 'status'}>
          <span>${visible(m.text)}</span>
          <button type="button" class="icon" aria-label="Dismiss" onClick=${() => close(m)}>✕</button>
        </div>`,
      )}
    </div>`,
    [list],
  );
  const question = ask && html`<${Confirm} ask=${ask} answer=${answer} />`;
  return { messages, question, say, fail, clear, confirm };
}
