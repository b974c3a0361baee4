import { html, useEffect, useState } from './html.js';
import { path, query } from '../core/api.js';
import { deferral, effect, specOf, valuesOf } from '../core/settings.js';
import { visible } from '../core/text.js';
import { explain } from '../core/why.js';
import { usePage, useRead } from './context.js';
import { Field, Rest, useForm } from './form.js';

// names are the fields by the names of the API.
const names = {
  image: 'image', startup_command: 'command', env: 'env', 'limits.memory': 'memory', 'limits.cpu': 'cpu', 'limits.disk': 'disk',
  'stop.command': 'stopCommand', 'stop.signal': 'stopSignal', 'stop.timeout': 'stopTimeout', stop: 'stopCommand',
}; // prettier-ignore

// Settings edits the specification of a container.
export function Settings({ id, container }) {
  const { api, rights } = usePage();
  const { data, error, reload } = useRead(() => api.get(`containers/${path(id)}/spec`), [api, id]);
  if (error && data === undefined) return html`<p class="error">${error.message}</p>`;
  if (data === undefined) return html`<p class="empty" role="status">Reading…</p>`;
  const { deferred } = explain(container, Date.now());
  return html`${deferred && html`<p class="deferred">${visible(deferred)}</p>`}
    <${Editor} key=${JSON.stringify(data)} id=${id} spec=${data} reload=${reload} may=${rights.has('admin')} />`;
}

function Editor({ id, spec, reload, may }) {
  const { api, say } = usePage();
  const form = useForm(valuesOf(spec), names);
  const [checked, setChecked] = useState(null); // {of: the values, body, changes, deferral}
  const { bind, values, busy } = form;
  const current = checked && checked.of === values;
  const at = `containers/${path(id)}`;

  useEffect(() => {
    if (current) form.form.current.lastElementChild.scrollIntoView({ block: 'nearest' });
  }, [current]);

  const put = (body, parameters) => api.put(at + query(parameters), body);

  async function check() {
    const body = specOf(spec, values);
    const ask = (apply) => put(body, { dry_run: true, apply });
    const [changes, later] = await Promise.all([ask('now'), ask('next-start')]);
    setChecked({ of: values, body, changes, deferral: deferral(changes, later) });
  }

  async function store(apply, message) {
    if (!(await form.send(() => put(checked.body, { apply })))) return;
    say(message);
    setChecked(null);
    reload();
  }

  function submit(event) {
    event.preventDefault();
    if (current) store('now', 'The settings are stored');
    else form.send(check);
  }

  const later = () => store('next-start', 'The settings are stored. What needs a new container waits for the next start.');

  return html`<form onSubmit=${submit} class="form settings" ref=${form.form} noValidate>
    <${Field} label="Image" ...${bind('image')} />
    <${Field} label="Startup command" placeholder="that of the image" ...${bind('command')} />
    <${Field} label="Environment" area rows=${Math.min(16, values.env.split('\n').length + 1)} ...${bind('env')} help="One NAME=value per line" />
    <div class="columns">
      <${Field} label="Memory" placeholder="no limit" ...${bind('memory')} />
      <${Field} label="CPU cores" placeholder="no limit" inputmode="decimal" ...${bind('cpu')} />
      <${Field} label="Disk" placeholder="no limit" ...${bind('disk')} />
    </div>
    <div class="columns">
      <${Field} label="Stop command" placeholder="none" ...${bind('stopCommand')} help="A line for the console" />
      <${Field} label="Stop signal" placeholder="SIGTERM" ...${bind('stopSignal')} />
      <${Field} label="Time to stop" placeholder="30s" ...${bind('stopTimeout')} />
    </div>
    ${current && html`<${Effects} ...${checked} />`}
    <${Rest} text=${form.rest} />
    ${
      may &&
      html`<footer>
      ${current && checked.deferral && html`<button type="button" disabled=${busy} onClick=${later}>Apply at the next start</button>`}
      <button class="primary" disabled=${busy || (current && !checked.changes.changed)}>${current ? 'Apply the changes' : 'Show what changes'}</button>
    </footer>`
    }
  </form>`;
}

// Effects states what applies when.
function Effects({ changes, deferral }) {
  const list = [...changes.actions.map(effect), deferral].filter(Boolean);
  return html`<section class="effects" role="status" aria-label="What changes">
    ${changes.changed ? html`<ul>${list.map((text) => html`<li key=${text}>${visible(text)}</li>`)}</ul>` : html`<p>Nothing changes.</p>`}
  </section>`;
}
