import { html, useState } from './html.js';
import { linkOf } from '../core/session.js';
import { usePage } from './context.js';
import { Dialog } from './dialogs.js';
import { Field, Rest, useForm } from './form.js';

const scopes = {
  read: 'see the container, its files and events',
  power: 'start, stop, kill, restart',
  console: 'send lines to the console',
  files: 'change files and backups',
};

const times = { '1h': 'an hour', '8h': '8 hours', '1d': 'a day', '7d': '7 days', '30d': '30 days' };

// Share makes a link with a token that is limited to one container.
export function Share({ id, close }) {
  const { api } = usePage();
  const [link, setLink] = useState('');
  const form = useForm({ name: '', ttl: '1d', scopes: ['read', 'console'] }, { name: 'name', ttl: 'ttl' });
  const { values, set, bind, busy } = form;
  const toggle = (scope) => (event) =>
    set('scopes', event.target.checked ? [...values.scopes, scope] : values.scopes.filter((s) => s !== scope));
  async function submit(event) {
    event.preventDefault();
    await form.send(async () => {
      const body = { name: values.name || `link to ${id}`, ttl: values.ttl, scopes: values.scopes, containers: [id] };
      setLink(linkOf(new URL('ui/', api.base), (await api.post('auth/tokens', body)).token, id));
    });
  }
  if (link) {
    return html`<${Dialog} title="The link" close=${close}>
      <p>Whoever has it may do what you chose, until it ends or the token is revoked (Tokens). It is not shown again.</p>
      <input class="secret" aria-label="Link" readonly value=${link} onFocus=${(event) => event.target.select()} autofocus />
      <footer><button class="primary" onClick=${close}>Done</button></footer>
    <//>`;
  }
  return html`<${Dialog} title=${`Share ${id}`} close=${close}>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      <p>A link for a friend, for this container only.</p>
      <${Field} label="Name" placeholder=${`link to ${id}`} maxlength="128" autofocus ...${bind('name')} help="Shown in events and in the audit log" />
      <${Field} label="Valid for" ...${bind('ttl')}>
        ${Object.entries(times).map(([time, text]) => html`<option key=${time} value=${time} selected=${time === values.ttl}>${text}</option>`)}
      <//>
      <fieldset><legend>The friend may</legend>
        ${Object.entries(scopes).map(([scope, text]) => html`<label class="check" key=${scope}><input type="checkbox" checked=${values.scopes.includes(scope)} onChange=${toggle(scope)} /> <b>${scope}</b> <span class="quiet">${text}</span></label>`)}
      </fieldset>
      <${Rest} text=${form.rest} />
      <footer><button type="button" onClick=${close}>Cancel</button><button class="primary" disabled=${busy || !values.scopes.length}>Make the link</button></footer>
    </form>
  <//>`;
}
