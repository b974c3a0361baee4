import { html, useState } from './html.js';
import { path } from '../core/api.js';
import { clock } from '../core/format.js';
import { brief, byStep, kinds, newRow, scheduleOf, valuesOf } from '../core/schedules.js';
import { visible } from '../core/text.js';
import { usePage, useAction, useNow, useRead } from './context.js';
import { Dialog } from './dialogs.js';
import { Field, Rest, useForm } from './form.js';
import { List } from './list.js';

const tones = { completed: 'ok', failed: 'bad', running: 'busy', skipped: 'idle' };

function Last({ run, now }) {
  if (!run) return html`<span class="quiet">never ran</span>`;
  return html`<span><span class=${`pill ${tones[run.state]}`}><i></i>${run.state}</span> ${clock(run.started_at, now)}
    ${run.message && html`<span class=${run.state === 'failed' ? 'error' : 'quiet'}> ${visible(run.message)}</span>`}</span>`;
}

// Schedules are the schedules of a container.
export function Schedules({ id }) {
  const { api, rights, confirm, say } = usePage();
  const now = useNow();
  const at = `containers/${path(id)}/schedules`;
  const may = rights.has('admin');
  const { data, error, reload } = useRead(async () => (may ? (await api.get(at)).schedules : []), [api, at, may], 5);
  const [edited, setEdited] = useState(null); // {schedule}; without one: a new one
  const [run, busy] = useAction();
  if (!may) return html`<p class="empty">Schedules need the scope admin.</p>`;
  const one = (s) => `${at}/${path(s.name)}`;
  const change = async (action, text) => {
    if (await run(action)) say(text);
    reload();
  };
  const toggle = (s) =>
    change(
      () => api.put(one(s), { ...s, enabled: !s.enabled }),
      s.enabled ? 'It runs no more by itself' : 'It runs by itself again',
    );
  async function remove(s) {
    const ask = {
      title: `Delete the schedule ${s.name}?`,
      text: 'A run of it ends. Its backups stay.',
      action: 'Delete',
      danger: true,
    };
    if (await confirm(ask)) await change(() => api.remove(one(s)), 'The schedule is deleted');
  }
  const next = (s) =>
    s.enabled
      ? s.status.next_run
        ? clock(s.status.next_run, now)
        : html`<span class="quiet">with the container</span>`
      : html`<span class="pill idle"><i></i>off</span>`;
  const columns = [
    { title: 'Name', cell: (s) => html`<b>${s.name}</b>` },
    { title: 'Times', cell: (s) => html`<span><code>${s.cron}</code> <span class="quiet">${s.timezone}</span></span>` },
    { title: 'Steps', kind: 'long', cell: (s) => s.steps.map(brief).map(visible).join(' → ') },
    { title: 'Next', cell: next },
    { title: 'Last', kind: 'long', cell: (s) => html`<${Last} run=${s.status.last_run} now=${now} />` },
    { title: '', kind: 'actions', cell: (s) => html`
      <button class="small" disabled=${busy} aria-label=${`Run now: ${s.name}`} onClick=${() => change(() => api.post(`${one(s)}/run`), 'Run: requested')}>Run now</button>
      <button class="small" disabled=${busy} aria-label=${`${s.enabled ? 'Turn off' : 'Turn on'} ${s.name}`} onClick=${() => toggle(s)}>${s.enabled ? 'Turn off' : 'Turn on'}</button>
      <button class="small" aria-label=${`Change ${s.name}`} onClick=${() => setEdited({ schedule: s })}>Change</button>
      <button class="small danger" aria-label=${`Delete ${s.name}`} onClick=${() => remove(s)}>Delete</button>` },
  ]; // prettier-ignore
  const close = () => {
    setEdited(null);
    reload();
  };
  return html`<${List} name="schedules" items=${data} error=${error} columns=${columns} keyOf=${(s) => s.name} empty="The container has no schedule yet."
      text=${(s) => `${s.name} ${s.cron} ${s.steps.map(brief).join(' ')}`}
      tools=${html`<button class="primary" onClick=${() => setEdited({})}>New schedule</button>`} />
    ${edited && html`<${Edit} at=${at} schedule=${edited.schedule} others=${(data ?? []).map((s) => s.name)} close=${close} />`}`;
}

// names are the fields by the names of the API, and by the codes of refusals.
const names = { name: 'name', cron: 'cron', timezone: 'timezone', if: 'if', missed: 'missed', steps: 'steps' };

// Edit makes or changes a schedule.
function Edit({ at, schedule, others, close }) {
  const { api, say } = usePage();
  const form = useForm(valuesOf(schedule), names);
  const { bind, values, busy } = form;
  async function put() {
    const body = scheduleOf(schedule, values, schedule ? [] : others);
    try {
      await api.put(`${at}/${path(body.name)}`, body);
    } catch (error) {
      throw byStep(error);
    }
  }
  async function submit(event) {
    event.preventDefault();
    if (!(await form.send(put))) return;
    say('The schedule is stored');
    close();
  }
  return html`<${Dialog} title=${schedule ? `Schedule ${schedule.name}` : 'New schedule'} close=${close} wide>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      ${!schedule && html`<${Field} label="Name" autofocus ...${bind('name')} help="Lower-case letters, digits and hyphens" />`}
      <div class="columns two">
        <${Field} label="Times" ...${bind('cron')} help="Five fields of cron, @daily, @start, @exit or @crash" />
        <${Field} label="Time zone" ...${bind('timezone')} help="Such as Europe/Berlin" />
        <${Field} label="Runs" ...${bind('if')} help=${schedule ? undefined : 'By default only if the container runs; with @exit and @crash always'}>
          ${!schedule && html`<option value="">by default</option>`}
          <option value="running">only if the container runs</option>
          <option value="always">always</option>
        <//>
        <${Field} label="Missed while berth was away" ...${bind('missed')}>
          <option value="skip">skipped</option>
          <option value="once">made up once</option>
        <//>
      </div>
      <${Steps} rows=${values.steps} set=${(rows) => form.set('steps', rows)} error=${bind('steps').error} />
      <${Rest} text=${form.rest} />
      <footer>
        <button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${busy}>Store</button>
      </footer>
    </form>
  <//>`;
}

function Steps({ rows, set, error }) {
  const change = (at, row) => set(rows.with(at, row));
  const up = (at) => set([...rows.slice(0, at - 1), rows[at], rows[at - 1], ...rows.slice(at + 1)]);
  return html`<fieldset class="steps" aria-describedby=${error ? 'steps-error' : undefined}>
    <legend>Steps</legend>
    <ol>${rows.map((row, at) => html`<${Step} key=${at} n=${at + 1} row=${row} change=${(next) => change(at, next)} up=${at > 0 && (() => up(at))} remove=${() => set(rows.toSpliced(at, 1))} />`)}</ol>
    ${error && html`<p class="error" id="steps-error" role="alert">${visible(error)}</p>`}
    <button type="button" class="small" onClick=${() => set([...rows, newRow('command')])}>Add a step</button>
  </fieldset>`;
}

function Step({ n, row, change, up, remove }) {
  const { options, help } = kinds[row.kind];
  const field = (name) => (event) => change({ ...row, [name]: event.target.value });
  const value = { 'aria-label': `Value of step ${n}`, value: row.value, onInput: field('value') };
  return html`<li>
    <select aria-label=${`Kind of step ${n}`} value=${row.kind} onInput=${(event) => change(newRow(event.target.value))}>
      ${Object.entries(kinds).map(([name, { title }]) => html`<option key=${name} value=${name}>${title}</option>`)}
    </select>
    ${options ? html`<select ...${value}>${options.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select>` : html`<input autocomplete="off" spellcheck=${false} placeholder=${help} ...${value} />`}
    ${row.kind === 'wait_for' && html`<input aria-label=${`Time limit of step ${n}`} placeholder="Time limit" value=${row.timeout} onInput=${field('timeout')} />`}
    <label class="check"><input type="checkbox" checked=${row.goesOn} onChange=${(event) => change({ ...row, goesOn: event.target.checked })} /> Go on if it fails</label>
    ${up && html`<button type="button" class="icon" aria-label=${`Move step ${n} up`} onClick=${up}>↑</button>`}
    <button type="button" class="icon" aria-label=${`Remove step ${n}`} onClick=${remove}>✕</button>
  </li>`;
}
