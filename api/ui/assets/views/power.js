import { html } from './html.js';
import { path } from '../core/api.js';
import { usePage, useAction } from './context.js';

const active = (c) => ['running', 'starting'].includes(c.state);
const installing = (c) => c.state === 'installing';
const starts = (c) => installing(c) && c.power === 'running'; // after the installation

// inScript reports whether the install script runs: the image is there.
const inScript = (c) => installing(c) && c.conditions?.some(({ type, status }) => type === 'ImageAvailable' && status === 'True');

// verbs are the buttons of a container, and when they make sense.
const verbs = [
  {
    name: 'start', title: 'Start', scope: 'power', on: (c) => ['ready', 'exit'].includes(c.state) || (installing(c) && !starts(c)),
    off: (c) => (starts(c) ? 'It starts when the installation is done' : ''),
    done: (c) => (installing(c) ? 'Requested: it starts when the installation is done' : ''),
  },
  {
    name: 'stop', title: 'Stop', scope: 'power', on: (c) => active(c) || starts(c),
    text: (c) => (installing(c)
      ? 'The container is not started after the installation. The installation itself goes on.'
      : 'The container receives its stop signal, and is killed if it does not exit in time.'),
  },
  {
    name: 'restart', title: 'Restart', scope: 'power', on: (c) => active(c) || c.state === 'exit',
    text: () => 'The container is stopped and started again. Its players or users are disconnected.',
  },
  {
    name: 'kill', title: 'Kill', scope: 'power', danger: true,
    on: (c) => active(c) || c.state === 'stopping' || Boolean(c.next_retry_at && !installing(c)),
    text: () => 'The container is killed at once, without time to save. Further restarts are cancelled.',
  },
  {
    name: 'cancel', to: 'reinstall', body: { install_script: '' }, title: 'Cancel installation', scope: 'admin', danger: true, when: inScript, on: inScript,
    text: () => 'The install script is killed, and removed from the specification: add it again with berth apply or the API to run it later. ' +
      'Files that it has written stay. The container becomes ready, and is not started.',
  },
  {
    name: 'reinstall', to: 'reinstall', body: {}, title: 'Reinstall', scope: 'admin', danger: true, on: (c) => c.state !== 'deleting',
    text: (c) => `${installing(c) ? 'The running installation is aborted' : 'The container is stopped'}, and the install script runs${installing(c) ? ' from its beginning' : ' again'} in the volume. ` +
      'Files may be overwritten. Afterwards the container is not started.',
  },
]; // prettier-ignore

// about is a sentence about the buttons, or nothing.
function about(c) {
  if (!installing(c)) return '';
  if (starts(c))
    return `It starts when the installation is done. Stop cancels that start${inScript(c) ? ', not the installation' : ''}.`;
  return 'It is not started after the installation. Start requests that.';
}

// Power has the buttons that the token may use.
export function Power({ container: c, onChange }) {
  const { api, rights, online, confirm, say, go } = usePage();
  const [run, busy] = useAction();
  const at = `containers/${path(c.internal_id)}`;

  async function act(verb) {
    if (verb.text) {
      const { title, text, danger } = verb;
      const question = {
        title: `${title}${verb.name === 'cancel' ? ' of' : ''} ${c.internal_id}?`,
        text: text(c),
        action: title,
        danger,
      };
      if (!(await confirm(question))) return;
    }
    if (await run(() => api.post(`${at}/${verb.to ?? verb.name}`, verb.body))) say(verb.done?.(c) || `${verb.title}: requested`);
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

  const shown = verbs.filter((verb) => rights.has(verb.scope) && (verb.when?.(c) ?? true));
  const note = shown.length > 0 && about(c);
  return html`<div class="power" role="toolbar" aria-label="Power">
      ${shown.map(
        (verb) =>
          html`<button key=${verb.name} class=${verb.danger ? 'danger' : verb.name === 'start' ? 'primary' : ''} title=${verb.off?.(c) || undefined}
            disabled=${busy || !online || !verb.on(c)} onClick=${() => act(verb)}>${verb.title}</button>`,
      )}
      ${rights.has('admin') && html`<button class="danger" disabled=${busy || !online || c.state === 'deleting'} onClick=${remove}>Delete</button>`}
    </div>
    ${note && html`<p class="quiet power-note" role="status">${note}</p>`}`;
}
