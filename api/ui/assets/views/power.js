import { html } from './html.js';
import { path } from '../core/api.js';
import { usePage, useAction } from './context.js';

// verbs are the buttons of a container, and when they make sense.
const verbs = [
  { name: 'start', title: 'Start', scope: 'power', on: (c) => ['ready', 'exit', 'installing'].includes(c.state) },
  {
    name: 'stop', title: 'Stop', scope: 'power', on: (c) => ['running', 'starting'].includes(c.state),
    text: 'The container receives its stop signal, and is killed if it does not exit in time.',
  },
  {
    name: 'restart', title: 'Restart', scope: 'power', on: (c) => ['running', 'starting', 'exit'].includes(c.state),
    text: 'The container is stopped and started again. Its players or users are disconnected.',
  },
  {
    name: 'kill', title: 'Kill', scope: 'power', danger: true,
    on: (c) => ['running', 'starting', 'stopping'].includes(c.state) || Boolean(c.next_retry_at),
    text: 'The container is killed at once, without time to save. Further restarts are cancelled.',
  },
  {
    name: 'reinstall', title: 'Reinstall', scope: 'admin', danger: true, on: (c) => c.state !== 'deleting',
    text: 'The container is stopped, a running installation is aborted, and the install script runs again in the volume. Files may be overwritten.',
  },
]; // prettier-ignore

// Power has the buttons that the token may use.
export function Power({ container: c, onChange }) {
  const { api, rights, online, confirm, say, go } = usePage();
  const [run, busy] = useAction();
  const at = `containers/${path(c.internal_id)}`;

  async function act(verb) {
    if (verb.text) {
      const { title, text, danger } = verb;
      if (!(await confirm({ title: `${title} ${c.internal_id}?`, text, action: title, danger }))) return;
    }
    if (await run(() => api.post(`${at}/${verb.name}`, verb.name === 'reinstall' ? {} : undefined)))
      say(`${verb.title}: requested`);
    onChange();
  }

  async function remove() {
    const answer = await confirm({
      title: `Delete ${c.internal_id}?`, text: 'The container is stopped and removed.', action: 'Delete', danger: true,
      expect: c.internal_id, option: 'Delete its volume and all its files too',
    }); // prettier-ignore
    if (!answer) return;
    if (await run(() => api.remove(`${at}${answer.checked ? '?volume=true' : ''}`))) {
      say('Delete: requested');
      go({ view: 'containers' });
    }
  }

  return html`<div class="power" role="toolbar" aria-label="Power">
    ${verbs
      .filter((verb) => rights.has(verb.scope))
      .map(
        (verb) =>
          html`<button key=${verb.name} class=${verb.danger ? 'danger' : verb.name === 'start' ? 'primary' : ''}
            disabled=${busy || !online || !verb.on(c)} onClick=${() => act(verb)}>${verb.title}</button>`,
      )}
    ${rights.has('admin') && html`<button class="danger" disabled=${busy || !online || c.state === 'deleting'} onClick=${remove}>Delete</button>`}
  </div>`;
}
