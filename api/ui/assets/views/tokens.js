import { html, useState } from './html.js';
import { all, path } from '../core/api.js';
import { clock, until } from '../core/format.js';
import { parseList } from '../core/input.js';
import { visible } from '../core/text.js';
import { usePage, useAction, useNow, useRead } from './context.js';
import { Dialog } from './dialogs.js';
import { Field, Rest, useForm } from './form.js';
import { List } from './list.js';

const scopes = {
  read: 'see containers, files and events',
  power: 'start, stop, kill, restart',
  console: 'send lines to consoles',
  files: 'change files',
  network: 'change the pool, rebind ports',
  admin: 'everything',
};

// Secret shows a token once.
function Secret({ token, close }) {
  return html`<${Dialog} title="The new token" close=${close}>
    <p>berth does not store it: copy it now.</p>
    <input class="secret" aria-label="Token" readonly value=${token} onFocus=${(event) => event.target.select()} autofocus />
    <footer><button class="primary" onClick=${close}>Done</button></footer>
  <//>`;
}

// names are the fields of a new token by the names of the API.
const names = { name: 'name', ttl: 'ttl', containers: 'containers', container_not_found: 'containers', scopes: 'scopes' };

function Mint({ close, onMinted }) {
  const { api } = usePage();
  const form = useForm({ name: '', ttl: '1h', containers: '', once: false, scopes: ['read'] }, names);
  const { values, set, bind, busy } = form;
  const toggle = (scope) => (event) =>
    set('scopes', event.target.checked ? [...values.scopes, scope] : values.scopes.filter((s) => s !== scope));
  async function submit(event) {
    event.preventDefault();
    const containers = parseList(values.containers);
    const body = {
      name: values.name || undefined,
      ttl: values.ttl,
      scopes: values.scopes,
      remove_on_use: values.once,
      containers: containers.length ? containers : undefined,
    };
    await form.send(async () => onMinted((await api.post('auth/tokens', body)).token));
  }
  return html`<${Dialog} title="New token" close=${close}>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      <${Field} label="Name" maxlength="128" autofocus ...${bind('name')} help="Shown in events and in the audit log" />
      <${Field} label="Valid for" ...${bind('ttl')} help="Such as 30m, 12h, 7d" />
      <fieldset><legend>It may</legend>
        ${Object.entries(scopes).map(([scope, text]) => html`<label class="check" key=${scope}><input type="checkbox" checked=${values.scopes.includes(scope)} onChange=${toggle(scope)} /> <b>${scope}</b> <span class="quiet">${text}</span></label>`)}
      </fieldset>
      <${Field} label="Only these containers" placeholder="all" ...${bind('containers')} help="Names, separated by commas" />
      <label class="check"><input type="checkbox" checked=${values.once} onChange=${(event) => set('once', event.target.checked)} /> for one request only</label>
      <${Rest} text=${form.rest} />
      <footer><button type="button" onClick=${close}>Cancel</button><button class="primary" disabled=${busy || !values.scopes.length}>Create</button></footer>
    </form>
  <//>`;
}

// Tokens are the minted tokens. Their secrets are never shown again.
export function Tokens() {
  const { api, confirm, say } = usePage();
  const now = useNow();
  const [open, setOpen] = useState(null);
  const [run] = useAction();
  const { data, error, reload } = useRead(() => all(api, 'auth/tokens', 'tokens'), [api], 10);
  async function revoke(token) {
    const ask = {
      title: `Revoke ${visible(token.name || token.id.slice(0, 8))}?`,
      text: 'It, and every token minted with it, ends at once. So do their sockets and transfers.',
      action: 'Revoke',
      danger: true,
    };
    if ((await confirm(ask)) && (await run(() => api.remove(`auth/tokens/${path(token.id)}`)))) say('Revoked');
    reload();
  }
  const columns = [
    { title: 'Token', kind: 'long', cell: (t) => html`<b>${visible(t.name || '–')}</b> <code class="quiet">${t.id.slice(0, 8)}</code>` },
    { title: 'Scopes', cell: (t) => t.scopes.join(', ') },
    { title: 'Containers', kind: 'long', cell: (t) => (t.containers.length ? visible(t.containers.join(', ')) : html`<span class="quiet">all</span>`) },
    { title: 'Expires', kind: 'nowrap', cell: (t) => html`<span title=${clock(t.expires_at, now)}>${until(t.expires_at, now)}</span>` },
    { title: 'Use', cell: (t) => (t.spent ? 'spent' : t.remove_on_use ? 'one request' : 'any number') },
    { title: '', kind: 'actions', cell: (t) => html`<button class="small danger" aria-label=${`Revoke ${visible(t.name || t.id.slice(0, 8))}`} onClick=${() => revoke(t)}>Revoke</button>` },
  ]; // prettier-ignore
  return html`<${List} name="tokens" items=${data} error=${error} columns=${columns} keyOf=${(t) => t.id} empty="There are no tokens but the configured one."
      text=${(t) => `${t.name} ${t.id} ${t.scopes.join(' ')} ${t.containers.join(' ')}`}
      tools=${html`<button class="primary" onClick=${() => setOpen({})}>New token</button>`} />
    ${
      open &&
      !open.secret &&
      html`<${Mint} close=${() => setOpen(null)} onMinted=${(secret) => {
        setOpen({ secret });
        reload();
      }} />`
    }
    ${open?.secret && html`<${Secret} token=${open.secret} close=${() => setOpen(null)} />`}`;
}
