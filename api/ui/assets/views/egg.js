import { html, useState } from './html.js';
import { make, names, volumeOf } from '../core/create.js';
import { check, FieldErrors } from '../core/form.js';
import { bothProtocols, parsePorts, parseSize } from '../core/input.js';
import { visible, visibleLines } from '../core/text.js';
import { usePage } from './context.js';
import { Dialog } from './dialogs.js';
import { Field, Rest, Storage, useForm } from './form.js';

const maxEgg = 1024 ** 2; // bytes

// FromEgg makes a container of an egg: first the file, then its variables, then the
// specification, which is shown before it is used.
export function FromEgg({ close, newName, network }) {
  const [read, setRead] = useState(null); // {text, egg}
  return read
    ? html`<${Choices} text=${read.text} egg=${read.egg} close=${close} newName=${newName} network=${network} />`
    : html`<${Source} close=${close} onRead=${setRead} />`;
}

// Source asks for the text of an egg.
function Source({ close, onRead }) {
  const { api } = usePage();
  const form = useForm({ text: '' }, { egg: 'text' });
  async function choose(event) {
    const [file] = event.target.files;
    if (!file) return;
    if (file.size > maxEgg) form.send(() => Promise.reject(new FieldErrors({ text: 'The file is larger than 1 MiB.' })));
    else form.set('text', await file.text());
  }
  async function submit(event) {
    event.preventDefault();
    const { text } = form.values;
    await form.send(async () => {
      if (!text.trim()) throw new FieldErrors({ text: 'Choose a file, or paste its text.' });
      onRead({ text, egg: await api.post('eggs', { egg: text }) });
    });
  }
  return html`<${Dialog} title="New container from an egg" close=${close} wide>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      <p>An egg is the game definition of the Pterodactyl and Pelican panels, in JSON or YAML.</p>
      <div class="field"><label for="egg-file">File</label><input id="egg-file" type="file" accept=".json,.yaml,.yml" onChange=${choose} /></div>
      <${Field} label="Text of the egg" area ...${form.bind('text')} />
      <${Rest} text=${form.rest} />
      <footer>
        <button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${form.busy}>Read the egg</button>
      </footer>
    </form>
  <//>`;
}

const variable = (name) => `variable.${name}`;

// initial returns the values of the form of an egg.
function initial(egg) {
  const values = {
    id: '',
    image: egg.images[0].name,
    startup: egg.startups[0].name,
    address: '0.0.0.0',
    ports: '',
    memory: '',
    disk: '',
    storage: '',
  };
  for (const v of egg.variables) values[variable(v.name)] = v.value;
  return values;
}

// Choices asks for the image, the ports and the variables of an egg.
function Choices({ text, egg, close, newName, network: Network }) {
  const { api, list, go, say } = usePage();
  const form = useForm(initial(egg), names);
  const [shown, setShown] = useState(null); // {import, of: the values, id, disk}
  const { bind, values, busy } = form;
  const current = shown && shown.of === values;

  // convert asks the daemon for the specification of the values.
  async function convert() {
    const { id, ports, memory, disk } = check({
      id: () => newName(values.id, (name) => list.some((c) => c.internal_id === name)),
      ports: () => parsePorts(bothProtocols(values.ports), values.address),
      memory: () => parseSize(values.memory),
      disk: () => parseSize(values.disk),
    });
    const changed = egg.variables.filter((v) => values[variable(v.name)] !== v.default); // a default may break its own rules
    const variables = Object.fromEntries(changed.map(({ name }) => [name, values[variable(name)]]));
    const got = await api.post('eggs', {
      egg: text,
      internal_id: id,
      image: values.image,
      startup: values.startup,
      variables,
      ports,
      memory,
    });
    const wrong = got.variables
      .filter(({ error }) => error)
      .map(({ name, error }) => [variable(name), `The value ${error}.`.replace('The value is required', 'A value is required')]);
    if (wrong.length) throw new FieldErrors(Object.fromEntries(wrong));
    if (disk) got.spec.limits = { ...got.spec.limits, disk };
    setShown({ import: got, of: values, id, disk });
  }

  async function submit(event) {
    event.preventDefault();
    if (!current) return form.send(convert);
    const { id, disk } = shown;
    if (!(await form.send(() => make(api, id, volumeOf(disk, values.storage), { ports: [], ...shown.import.spec }))))
      return undefined;
    say(`${id} is created`);
    close();
    return go({ view: 'containers', id, tab: 'console' });
  }

  return html`<${Dialog} title=${`New container: ${visible(egg.name)}`} close=${close} wide>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      ${egg.description && html`<p class="quiet">${visible(egg.description)}</p>`}
      <${Field} label="Name" autofocus ...${bind('id')} help="Letters, digits, dot, dash, underscore" />
      <${Choice} label="Image" choices=${egg.images} ...${bind('image')} />
      ${egg.startups.length > 1 && html`<${Choice} label="Startup command" choices=${egg.startups} ...${bind('startup')} />`}
      <${Network} form=${{ ...form, values: { ...values, ports: bothProtocols(values.ports) } }} />
      <div class="columns two">
        <${Field} label="Memory" placeholder="4 GiB" ...${bind('memory')} />
        <${Field} label="Disk" placeholder="10 GiB" ...${bind('disk')} />
      </div>
      <p class="quiet help">The first port is the game's, tcp and udp. An empty limit is no limit.</p>
      <${Storage} form=${form} />
      ${egg.variables.map((v) => html`<${Variable} key=${v.name} v=${v} bind=${bind(variable(v.name))} />`)}
      ${current && html`<${Specification} got=${shown.import} />`}
      <${Rest} text=${form.rest} />
      <footer>
        <button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${busy}>${current ? 'Create and start' : 'Show the specification'}</button>
      </footer>
    </form>
  <//>`;
}

const Choice = ({ label, choices, value, ...rest }) =>
  html`<${Field} label=${label} value=${value} ...${rest}>
    ${choices.map((c) => html`<option key=${c.name} value=${c.name} selected=${c.name === value}>${visible(c.name)}</option>`)}
  <//>`;

// Variable asks for one variable: a selection if its rules list its values.
function Variable({ v, bind }) {
  const rule = v.rules.find((one) => one.startsWith('in:'));
  const listed = rule && !rule.includes('"') ? rule.slice(3).split(',') : null;
  const help = html`${v.description && html`<p>${visible(v.description)}</p>`}
    <p><code>${v.name}</code>${v.rules.length > 0 && html` <span>${visible(v.rules.join(', '))}</span>`}${!v.editable && ' (not for the customer)'}</p>`;
  const label = visible(v.title || v.name);
  if (!listed?.includes(bind.value)) return html`<${Field} label=${label} help=${help} ...${bind} />`;
  return html`<${Field} label=${label} help=${help} ...${bind}>
    ${listed.map((one) => html`<option key=${one} value=${one} selected=${one === bind.value}>${visible(one)}</option>`)}
  <//>`;
}

// Specification shows what is created, and what it lacks.
function Specification({ got }) {
  return html`<section class="specification" aria-label="Specification">
    <h3>Specification</h3>
    ${got.notes.length > 0 && html`<ul class="quiet">${got.notes.map((note) => html`<li key=${note}>${visible(note)}</li>`)}</ul>`}
    <pre tabindex="0" aria-label="Specification in JSON">${visibleLines(JSON.stringify(got.spec, null, 2))}</pre>
  </section>`;
}
