import { html } from './html.js';
import { all, path } from '../core/api.js';
import { check, errorsOf, FieldError } from '../core/form.js';
import { port } from '../core/format.js';
import { addresses, parseCores, parsePorts, parseSize, reach } from '../core/input.js';
import { usePage, useRead } from './context.js';
import { Dialog } from './dialogs.js';
import { Field, Rest, useForm } from './form.js';

const empty = {
  id: '', image: '', command: '', pattern: '', install: '', address: '0.0.0.0', ports: '', memory: '', cpu: '', disk: '',
}; // prettier-ignore

// names are the fields by the names of the API, and by its codes.
const names = {
  internal_id: 'id', name: 'id', image: 'image', startup_command: 'command', start_pattern: 'pattern', install_script: 'install',
  ports: 'ports', ip: 'ports', port: 'ports', port_bound: 'ports', port_not_in_pool: 'ports', container_exists: 'id', container_deleting: 'id',
  'limits.memory': 'memory', 'limits.cpu': 'cpu', 'limits.disk': 'disk', size_limit: 'disk',
}; // prettier-ignore

function required(text, what) {
  if (!text.trim()) throw new Error(`a container needs ${what}`);
  return text.trim();
}

// read returns the values of the form, or throws what is wrong with each of them.
function read(values, taken) {
  return check({
    id() {
      const id = required(values.id, 'a name');
      if (!/^[a-z0-9][a-z0-9_.-]{0,62}$/i.test(id)) {
        throw new Error('use at most 63 letters, digits, dots, dashes and underscores, and begin with a letter or digit');
      }
      if (taken(id)) throw new Error('there is a container with this name');
      return id;
    },
    image: () => required(values.image, 'an image'),
    ports: () => parsePorts(values.ports, values.address),
    memory: () => parseSize(values.memory),
    cpu: () => parseCores(values.cpu),
    disk: () => parseSize(values.disk),
  });
}

// create adds the ports that the pool lacks, makes a volume and a container on it, and
// starts it. If the daemon refuses one of them, those before it are removed again.
async function create(api, values, { id, image, ports, memory, cpu, disk }) {
  const made = [];
  try {
    for (const one of ports) {
      if (await added(api, one)) made.push(`network/ports/${path(one.ip)}/${one.port}?protocol=${one.protocol}`);
    }
    const volume = await api.post('volumes', disk ? { name: id, size_limit: disk } : { name: id });
    made.push(`volumes/${path(volume.volume_id)}`);
    await api.put(`containers/${path(id)}`, {
      image,
      volume_id: volume.volume_id,
      startup_command: values.command,
      start_pattern: values.pattern,
      install_script: values.install,
      ports,
      limits: { memory, cpu, disk },
      power: 'running',
    });
  } catch (error) {
    const refused = error instanceof FieldError || (error.status >= 400 && error.status < 500);
    for (const one of refused ? made.reverse() : []) await api.remove(one).catch(() => {});
    throw error;
  }
}

// added adds a port to the pool. It returns whether the pool lacked it.
async function added(api, one) {
  try {
    await api.post('network/ports', one);
    return true;
  } catch (error) {
    if (error.code === 'port_exists') return false;
    const { fields, rest } = errorsOf(error, names);
    if (fields.ports) throw new FieldError('ports', `${port(one)}: ${fields.ports} ${rest}`.trim());
    throw error;
  }
}

// listens returns the lines that name where a container will listen, or null.
function listens({ ports, address }) {
  let list;
  try {
    list = parsePorts(ports, address);
  } catch {
    return null; // the error is shown when the form is sent
  }
  const lines = list.slice(0, 4).map((one) => html`<span><code>${port(one)}</code>: ${reach(one.ip)}</span>`);
  return list.length > 4 ? [...lines, html`<span>and ${list.length - 4} more</span>`] : lines;
}

// Network asks for ports and for the address that they listen on.
function Network({ form }) {
  const { api } = usePage();
  const pool = useRead(() => all(api, 'network/ports', 'ports'), [api]);
  const lines = listens(form.values);
  return html`<div class="columns two">
      <${Field} label="Ports" placeholder="25565, 24454/udp" ...${form.bind('ports')} />
      <${Field} label="Listens on" ...${form.bind('address')}>
        ${addresses(pool.data ?? []).map(
          (ip) =>
            html`<option key=${ip} value=${ip} selected=${ip === form.values.address}>
              ${ip === '0.0.0.0' ? 'all addresses (0.0.0.0)' : ip === '127.0.0.1' ? 'this host only (127.0.0.1)' : ip}
            </option>`,
        )}
      <//>
    </div>
    <div class="quiet help listens" role="status">
      ${lines?.length > 0 && html`<span>Can be reached from:</span>${lines}`}
      ${lines?.length === 0 && 'No port: the container cannot be reached over the network.'}
    </div>`;
}

// Create asks for the few things that a container needs. Everything else is for
// berth apply.
export function Create({ close }) {
  const { api, list, go, say } = usePage();
  const form = useForm(empty, names);
  const { bind, values, busy } = form;

  async function submit(event) {
    event.preventDefault();
    let id;
    const done = await form.send(() => {
      const checked = read(values, (name) => list.some((c) => c.internal_id === name));
      id = checked.id;
      return create(api, values, checked);
    });
    if (!done) return;
    say(`${id} is created`);
    close();
    go({ view: 'containers', id, tab: 'console' });
  }

  return html`<${Dialog} title="New container" close=${close} wide>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      <${Field} label="Name" autofocus ...${bind('id')} help="Letters, digits, dot, dash, underscore" />
      <${Field} label="Image" placeholder="games/survival:1.20" ...${bind('image')} />
      <${Field} label="Startup command" placeholder="that of the image" ...${bind('command')} />
      <${Field} label="Start pattern" placeholder="^Done" ...${bind('pattern')} help="The line of the console that shows that it runs; empty: at once" />
      <${Network} form=${form} />
      <div class="columns">
        <${Field} label="Memory" placeholder="512 MiB" ...${bind('memory')} />
        <${Field} label="CPU cores" placeholder="1.5" inputmode="decimal" ...${bind('cpu')} />
        <${Field} label="Disk" placeholder="10 GiB" ...${bind('disk')} />
      </div>
      <p class="quiet help">An empty limit is no limit.</p>
      <${Field} label="Install script" area ...${bind('install')} help="Runs once in the new volume, before the first start" />
      <${Rest} text=${form.rest} />
      <footer>
        <button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${busy}>${busy ? 'Creating…' : 'Create and start'}</button>
      </footer>
    </form>
  <//>`;
}
