import { html, useState } from './html.js';
import { all, path } from '../core/api.js';
import { port } from '../core/format.js';
import { parsePorts } from '../core/input.js';
import { format } from '../core/route.js';
import { visible } from '../core/text.js';
import { usePage, useAction, useRead } from './context.js';
import { List } from './list.js';
import { Prompt } from './prompt.js';

const tones = { applied: 'ok', pending: 'busy', unavailable: 'warn', disabled: 'idle' };

// Ports are the entries of the pool.
export function Ports() {
  const { api, rights, confirm, say } = usePage();
  const [prompt, setPrompt] = useState(null);
  const [run] = useAction();
  const { data, error, reload } = useRead(() => all(api, 'network/ports', 'ports'), [api], 10);
  const may = rights.node('network');

  async function add(text) {
    try {
      for (const one of parsePorts(text)) await api.post('network/ports', one);
    } finally {
      reload();
    }
    say('Added to the pool');
  }
  async function remove(p) {
    const ask = { title: `Remove ${port(p)}?`, text: 'No container can bind the port any more.', action: 'Remove', danger: true };
    if (
      (await confirm(ask)) &&
      (await run(() => api.remove(`network/ports/${path(p.ip, String(p.port))}?protocol=${p.protocol}`)))
    )
      say('Removed');
    reload();
  }
  const columns = [
    { title: 'Port', cell: (p) => html`<code>${port(p)}</code>` },
    { title: 'In use', cell: (p) => (p.container ? html`<a href=${format({ view: 'containers', id: p.container })}>${visible(p.container)}</a>` : p.in_use ? 'reserved by hand' : html`<span class="quiet">free</span>`) },
    { title: 'Firewall', kind: 'long', cell: (p) => html`<span class=${`pill ${tones[p.firewall.state]}`}><i></i>${p.firewall.state}</span> <span class="quiet">${visible(p.firewall.reason)}</span>` },
    { title: '', kind: 'actions', cell: (p) => may && html`<button class="small danger" disabled=${Boolean(p.container)} aria-label=${`Remove ${port(p)}`} onClick=${() => remove(p)}>Remove</button>` },
  ]; // prettier-ignore
  return html`<${List} name="ports" items=${data} error=${error} columns=${columns} keyOf=${port} empty="The pool is empty: add the ports that containers may bind."
      text=${(p) => `${port(p)} ${p.container ?? ''} ${p.in_use ? '' : 'free'}`}
      tools=${may && html`<button class="primary" onClick=${() => setPrompt({ title: 'Add ports', label: 'Ports, separated by commas', value: '0.0.0.0:25565/tcp', help: '0.0.0.0 is all addresses of this host, 127.0.0.1 this host only.', action: 'Add', done: add })}>Add ports</button>`} />
    ${prompt && html`<${Prompt} prompt=${prompt} close=${() => setPrompt(null)} />`}`;
}
