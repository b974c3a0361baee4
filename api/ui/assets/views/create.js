import { html, useState } from './html.js';
import { path } from '../core/api.js';
import { parsePorts, parseSize } from '../core/input.js';
import { usePage, useAction } from './context.js';
import { Dialog } from './dialogs.js';

const empty = { id: '', image: '', command: '', pattern: '', install: '', ports: '', memory: '', cpu: '', disk: '' };

// create adds the ports that the pool lacks, makes a volume and a container on it, and
// starts it. If the daemon refuses one of them, those before it are removed again.
async function create(api, values) {
  const ports = parsePorts(values.ports);
  const limits = { memory: parseSize(values.memory), cpu: Number(values.cpu) || 0, disk: parseSize(values.disk) };
  const made = [];
  try {
    for (const port of ports) {
      if (await added(api, port)) made.push(`network/ports/${path(port.ip)}/${port.port}?protocol=${port.protocol}`);
    }
    const volume = await api.post('volumes', limits.disk ? { name: values.id, size_limit: limits.disk } : { name: values.id });
    made.push(`volumes/${path(volume.volume_id)}`);
    await api.put(`containers/${path(values.id)}`, {
      image: values.image,
      volume_id: volume.volume_id,
      startup_command: values.command,
      start_pattern: values.pattern,
      install_script: values.install,
      ports,
      limits,
      power: 'running',
    });
  } catch (error) {
    const refused = error.status >= 400 && error.status < 500;
    for (const one of refused ? made.reverse() : []) await api.remove(one).catch(() => {});
    throw error;
  }
}

// added adds a port to the pool. It returns whether the pool lacked it.
async function added(api, port) {
  try {
    await api.post('network/ports', port);
    return true;
  } catch (error) {
    if (error.code === 'port_exists') return false;
    throw error;
  }
}

// Field is a labelled input.
export function Field({ label, help, area, ...rest }) {
  return html`<label class="field">
    <span>${label}</span>
    ${area ? html`<textarea rows="3" spellcheck=${false} ...${rest}></textarea>` : html`<input autocomplete="off" spellcheck=${false} ...${rest} />`}
    ${help && html`<small class="quiet">${help}</small>`}
  </label>`;
}

// Create asks for the few things that a container needs. Everything else is for
// berth apply.
export function Create({ close }) {
  const { api, list, go, say } = usePage();
  const [values, setValues] = useState(empty);
  const [run, busy] = useAction();
  const bind = (name) => ({
    name,
    value: values[name],
    onInput: (event) => setValues({ ...values, [name]: event.target.value }),
  });
  const taken = list.some((c) => c.internal_id === values.id);

  async function submit(event) {
    event.preventDefault();
    if (!(await run(() => create(api, values)))) return;
    say(`${values.id} is created`);
    close();
    go({ view: 'containers', id: values.id, tab: 'console' });
  }

  return html`<${Dialog} title="New container" close=${close} wide>
    <form onSubmit=${submit} class="form">
      <${Field} label="Name" required pattern="[a-zA-Z0-9][a-zA-Z0-9_.\\-]{0,62}" autofocus ...${bind('id')}
        help=${taken ? 'There is a container with this name.' : 'Letters, digits, dot, dash, underscore'} />
      <${Field} label="Image" required placeholder="games/survival:1.20" ...${bind('image')} />
      <${Field} label="Startup command" placeholder="that of the image" ...${bind('command')} />
      <${Field} label="Start pattern" placeholder="^Done" ...${bind('pattern')} help="The line of the console that shows that it runs; empty: at once" />
      <${Field} label="Ports" placeholder="127.0.0.1:25565/tcp" ...${bind('ports')} help="Separated by commas; added to the pool if they are not in it" />
      <div class="columns">
        <${Field} label="Memory" placeholder="512 MiB" ...${bind('memory')} />
        <${Field} label="CPU cores" placeholder="1.5" inputmode="decimal" ...${bind('cpu')} />
        <${Field} label="Disk" placeholder="10 GiB" ...${bind('disk')} />
      </div>
      <${Field} label="Install script" area ...${bind('install')} help="Runs once in the new volume" />
      <footer>
        <button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${busy || taken}>${busy ? 'Creating…' : 'Create and start'}</button>
      </footer>
    </form>
  <//>`;
}
