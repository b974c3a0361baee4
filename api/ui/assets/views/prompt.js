import { html, useState } from './html.js';
import { Dialog } from './dialogs.js';

// Prompt asks for one text: {title, value, action, label, done}.
export function Prompt({ prompt, close }) {
  const [value, setValue] = useState(prompt.value);
  const submit = (event) => {
    event.preventDefault();
    close();
    prompt.done(value);
  };
  return html`<${Dialog} title=${prompt.title} close=${close}>
    <form onSubmit=${submit}>
      <label class="field"><span>${prompt.label ?? 'Name'}</span>
        <input required autofocus autocomplete="off" spellcheck=${false} value=${value} onInput=${(event) => setValue(event.target.value)} /></label>
      <footer><button type="button" onClick=${close}>Cancel</button><button class="primary">${prompt.action}</button></footer>
    </form>
  <//>`;
}
