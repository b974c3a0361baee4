import { html, useState } from './html.js';
import { path } from '../core/api.js';
import { bytes, clock } from '../core/format.js';
import { FieldError } from '../core/form.js';
import { visible } from '../core/text.js';
import { usePage, useAction, useNow, useRead } from './context.js';
import { Dialog } from './dialogs.js';
import { Field, Rest, useForm } from './form.js';
import { List } from './list.js';

const tones = { completed: 'ok', failed: 'bad', cancelled: 'idle' };
const ended = (t) => t.state in tones;
const waits = (t) => t.state === 'handing_over' && t.message;

const what =
  'Bring the other node back: its answer ends the transfer. Meanwhile the container runs nowhere, because that node may run it.';
const gone = {
  title: 'Take the container back without an answer?',
  text: 'Only if the other node will never run it: if it was switched off for ever, or what it has of the container was deleted. Otherwise both nodes run it.',
  action: 'The other node is gone',
  danger: true,
};

function State({ t }) {
  return html`<span class=${`pill ${tones[t.state] ?? (waits(t) ? 'bad' : 'busy')}`}><i></i>${t.state.replace('_', ' ')}</span>
    ${t.message && html`<div class=${t.state === 'failed' || waits(t) ? 'error' : 'quiet'}>${visible(t.message)}</div>`}
    ${t.backups_kept.length > 0 && html`<div class="quiet">${t.backups_kept.length} of its backups stay here</div>`}
    ${waits(t) && html`<p class="remedy"><b>What to do:</b> ${what}</p>`}`;
}

function Progress({ t }) {
  const { bytes: sent, total, round } = t.progress;
  if (ended(t) || !round) return '';
  return html`<span>round ${round}, ${bytes(sent)}${total ? ` of ${bytes(total)}` : ''}</span>`;
}

// Transfers are the transfers of a container to other nodes.
export function Transfers({ id }) {
  const { api, rights, confirm, say } = usePage();
  const now = useNow();
  const may = rights.node('admin');
  const { data, error, reload } = useRead(
    async () => (may ? (await api.get('transfers')).transfers.filter((t) => t.container === id) : []),
    [api, id, may],
    2,
  );
  const [begins, setBegins] = useState(false);
  const [run, busy] = useAction();
  if (!may) return html`<p class="empty">Transfers need the scope admin, for all containers.</p>`;
  async function cancel(t, query = '') {
    if (await run(() => api.remove(`transfers/${path(t.transfer_id)}${query}`))) say('The transfer has ended');
    reload();
  }
  async function abandon(t) {
    if (await confirm(gone)) await cancel(t, '?destination_is_gone=true');
  }
  const columns = [
    { title: 'To', kind: 'long', cell: (t) => html`<b>${visible(t.url)}</b>` },
    { title: 'Begun', cell: (t) => clock(t.created_at * 1000, now) },
    { title: 'State', kind: 'long', cell: (t) => html`<${State} t=${t} />` },
    { title: 'Sent', cell: (t) => html`<${Progress} t=${t} />` },
    { title: '', kind: 'actions', cell: (t) => !ended(t) && html`
      <button class="small" disabled=${busy} aria-label=${`Cancel the transfer to ${visible(t.url)}`} onClick=${() => cancel(t)}>Cancel</button>
      ${waits(t) && html`<button class="small danger" disabled=${busy} onClick=${() => abandon(t)}>The node is gone</button>`}` },
  ]; // prettier-ignore
  const open = data?.some((t) => !ended(t));
  const close = () => {
    setBegins(false);
    reload();
  };
  return html`<${List} name="transfers" items=${data} error=${error} columns=${columns} keyOf=${(t) => t.transfer_id}
      empty="The container was not moved in the last 7 days." text=${(t) => `${t.url} ${t.state} ${t.message}`}
      tools=${html`<button class="primary" disabled=${open} onClick=${() => setBegins(true)}>Move to another node</button>`} />
    ${begins && html`<${Begin} id=${id} close=${close} />`}`;
}

// names are the fields by the names of the API.
const names = { url: 'url', token: 'token', keep: 'keep', random_ports: 'ports' };

// Begin moves a container.
function Begin({ id, close }) {
  const { api, say } = usePage();
  const form = useForm({ url: '', token: '', ports: 'same', start: '', keep: '24h', backups: '' }, names);
  const { bind, values, busy } = form;
  async function post() {
    if (!values.url.trim()) throw new FieldError('url', 'Is required.');
    if (!values.token.trim()) throw new FieldError('token', 'Is required.');
    await api.post(`containers/${path(id)}/transfer`, {
      url: values.url.trim(),
      token: values.token.trim(),
      random_ports: values.ports === 'random',
      start: values.start ? values.start === 'yes' : null,
      keep: values.keep.trim(),
      backups: values.backups === 'yes',
    });
  }
  async function submit(event) {
    event.preventDefault();
    if (!(await form.send(post))) return;
    say('The transfer has begun');
    close();
  }
  return html`<${Dialog} title=${`Move ${id} to another node`} close=${close} wide>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      <p class="quiet">Its files, schedules and backup policy go with it. It runs here until all but the last changes are there.</p>
      <div class="columns two">
        <${Field} label="Address of the other node" autofocus ...${bind('url')} help="Such as https://node2:8070" />
        <${Field} label="Token of the other node" type="password" ...${bind('token')} help="Minted there with the scope arrive" />
        <${Field} label="Ports" ...${bind('ports')}>
          <option value="same">the same</option>
          <option value="random">free ones of the other node</option>
        <//>
        <${Field} label="There it" ...${bind('start')}>
          <option value="">runs if it is to run here</option>
          <option value="yes">is started</option>
          <option value="no">is not started</option>
        <//>
        <${Field} label="The volume stays here for" ...${bind('keep')} help="Up to 30d; 0s: it is deleted at once" />
        <${Field} label="Completed backups" ...${bind('backups')}>
          <option value="">stay here</option>
          <option value="yes">go with it</option>
        <//>
      </div>
      <${Rest} text=${form.rest} />
      <footer>
        <button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${busy}>Move</button>
      </footer>
    </form>
  <//>`;
}
