import { html, useState } from './html.js';
import { path } from '../core/api.js';
import { clock } from '../core/format.js';
import { visible } from '../core/text.js';
import { usePage, useNow, useRead } from './context.js';
import { Dialog } from './dialogs.js';
import { Field, Rest, useForm } from './form.js';

// read returns the backup policy of a volume, or null if it has none.
async function read(api, at) {
  try {
    return await api.get(at);
  } catch (error) {
    if (error.code === 'backup_policy_not_found') return null;
    throw error;
  }
}

// Policy is the regular backups of a volume.
export function Policy({ volume }) {
  const { api, rights } = usePage();
  const now = useNow();
  const at = `volumes/${path(volume)}/backup-policy`;
  const { data, error, reload } = useRead(() => read(api, at), [api, at], 30);
  const [open, setOpen] = useState(false);
  const close = () => {
    setOpen(false);
    reload();
  };
  if (error && data === undefined) return html`<span class="error">${error.message}</span>`;
  if (data === undefined) return null;
  return html`<span class="policy">
      ${data ? html`${data.cron ? `At ${data.cron} in ${data.timezone}` : `Every ${data.every}`}, the last ${data.keep} are kept${data.next_run_at && html`; next ${clock(data.next_run_at, now)}`}` : 'No regular backups'}
      ${data?.message && html`<span class="error"> ${visible(data.message)}</span>`}
    </span>
    ${rights.has('files') && html`<button onClick=${() => setOpen(true)}>Regular backups…</button>`}
    ${open && html`<${Edit} at=${at} policy=${data} close=${close} />`}`;
}

// Edit sets or removes a policy. What the form does not have stays as it is.
function Edit({ at, policy, close }) {
  const { api, say } = usePage();
  const initial = {
    every: policy?.cron ? '' : (policy?.every ?? '24h'), cron: policy?.cron ?? '', timezone: policy?.timezone ?? '',
    keep: String(policy?.keep ?? 7), ignore: (policy?.ignore ?? []).join('\n'),
  }; // prettier-ignore
  const form = useForm(initial, { every: 'every', cron: 'cron', timezone: 'timezone', keep: 'keep', ignore: 'ignore' });
  const { bind, values, busy } = form;
  async function change(action, text) {
    if (!(await form.send(action))) return;
    say(text);
    close();
  }
  const submit = (event) => {
    event.preventDefault();
    const body = {
      ...policy,
      every: values.every.trim() || '0s',
      cron: values.cron.trim(),
      timezone: values.timezone.trim(),
      keep: Number(values.keep),
      ignore: values.ignore.split('\n').filter(Boolean),
    };
    return change(() => api.put(at, body), 'The policy is stored');
  };
  return html`<${Dialog} title="Regular backups" close=${close}>
    <form onSubmit=${submit} class="form" ref=${form.form} noValidate>
      <${Field} label="Every" autofocus ...${bind('every')} help="Such as 6h, 24h; empty: at the times below" />
      <div class="columns">
        <${Field} label="Times" ...${bind('cron')} placeholder="none" help="Such as 0 4 * * * or @daily" />
        <${Field} label="Time zone" ...${bind('timezone')} placeholder="UTC" help="Such as Europe/Berlin" />
      </div>
      <${Field} label="Keep the last" inputmode="numeric" ...${bind('keep')} />
      <${Field} label="Leave out" area ...${bind('ignore')} help="One pattern per line, such as *.log" />
      <${Rest} text=${form.rest} />
      <footer>
        ${policy && html`<button type="button" class="danger" disabled=${busy} onClick=${() => change(() => api.remove(at), 'The policy is removed')}>Remove</button>`}
        <button type="button" onClick=${close}>Cancel</button>
        <button class="primary" disabled=${busy}>Store</button>
      </footer>
    </form>
  <//>`;
}
