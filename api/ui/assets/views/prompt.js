import { html } from './html.js';
import { FieldError } from '../core/form.js';
import { Dialog } from './dialogs.js';
import { Field, Rest, useForm } from './form.js';

// Prompt asks for one text, and for what the fields of more ask: {title, value, action, label, help, more, done}. It stays
// open while done fails, and shows its error.
export function Prompt({ prompt, close }) {
  const form = useForm({ text: prompt.value, ...prompt.more?.values });
  async function submit(event) {
    event.preventDefault();
    const done = await form.send(async () => {
      try {
        await prompt.done(form.values.text, form.values);
      } catch (error) {
        throw new FieldError('text', error.message.replace(/^[a-z][\w.[\]]*: /, '')); // without the name of the API
      }
    });
    if (done) close();
  }
  return html`<${Dialog} title=${prompt.title} close=${close}>
    <form onSubmit=${submit} ref=${form.form}>
      <${Field} label=${prompt.label ?? 'Name'} required autofocus help=${prompt.help} ...${form.bind('text')} />
      ${prompt.more && html`<${prompt.more.fields} form=${form} />`}
      <${Rest} text=${form.rest} />
      <footer><button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${form.busy}>${prompt.action}</button></footer>
    </form>
  <//>`;
}
