import { html, useState } from './html.js';
import { all } from '../core/api.js';
import { make, names, volumeOf } from '../core/create.js';
import { check } from '../core/form.js';
import { port } from '../core/format.js';
import { addresses, parseCores, parsePorts, parseSize, reach } from '../core/input.js';
import { usePage, useRead } from './context.js';
import { Dialog } from './dialogs.js';
import { FromEgg } from './egg.js';
import { Field, Rest, Storage, useForm } from './form.js';

const empty = {
  id: '', image: '', command: '', pattern: '', install: '', address: '0.0.0.0', ports: '', memory: '', cpu: '', disk: '', storage: '',
}; // prettier-ignore

function required(text, what) {
  if (!text.trim()) throw new Error(`a container needs ${what}`);
  return text.trim();
}

// newName returns the name of a new container, or throws what is wrong with it.
function newName(text, taken) {
  const id = required(text, 'a name');
  if (!/^[a-z0-9][a-z0-9_.-]{0,62}$/i.test(id)) {
    throw new Error('use at most 63 letters, digits, dots, dashes and underscores, and begin with a letter or digit');
  }
  if (taken(id)) throw new Error('there is a container with this name');
  return id;
}

// read returns the values of the form, or throws what is wrong with each of them.
function read(values, taken) {
  return check({
    id: () => newName(values.id, taken),
    image: () => required(values.image, 'an image'),
    ports: () => parsePorts(values.ports, values.address),
    memory: () => parseSize(values.memory),
    cpu: () => parseCores(values.cpu),
    disk: () => parseSize(values.disk),
  });
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
  const [fromEgg, setFromEgg] = useState(false);
  return fromEgg
    ? html`<${FromEgg} close=${close} newName=${newName} network=${Network} />`
    : html`<${Plain} close=${close} egg=${() => setFromEgg(true)} />`;
}

// Plain is the form without an egg.
function Plain({ close, egg }) {
  const { api, list, go, say } = usePage();
  const form = useForm(empty, names);
  const { bind, values, busy } = form;

  async function submit(event) {
    event.preventDefault();
    let id;
    const done = await form.send(() => {
      const checked = read(values, (name) => list.some((c) => c.internal_id === name));
      id = checked.id;
      const { image, ports, memory, cpu, disk } = checked;
      return make(api, id, volumeOf(disk, values.storage), {
        image,
        startup_command: values.command,
        start_pattern: values.pattern,
        install_script: values.install,
        ports,
        limits: { memory, cpu, disk },
      });
    });
    if (!done) return;
    say(`${id} is created`);
    close();
    go({ view: 'containers', id, tab: 'console' });
  }

  return html`<${Dialog} title="New container" close=${close} wide>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      <p class="from"><button type="button" onClick=${egg}>From an egg…</button> <span class="quiet">the game definition of another panel, or:</span></p>
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
      <${Storage} form=${form} />
      <${Field} label="Install script" area ...${bind('install')} help="Runs once in the new volume, before the first start" />
      <${Rest} text=${form.rest} />
      <footer>
        <button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${busy}>${busy ? 'Creating…' : 'Create and start'}</button>
      </footer>
    </form>
  <//>`;
}
