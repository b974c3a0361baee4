import { html, useState } from './html.js';
import { clock } from '../core/format.js';
import { visible } from '../core/text.js';
import { usePage, useNow, useRead } from './context.js';
import { List } from './list.js';
import { who } from './transitions.js';

// newest reads the last entries of the audit log, newest first.
const newest = async (api, last) => (await api.get('audit', { last })).entries.reverse();

// Audit shows the entries of the audit log.
export function Audit() {
  const { api } = usePage();
  const now = useNow();
  const [count, setCount] = useState(200);
  const { data, error } = useRead(() => newest(api, count), [api, count], 10);
  const columns = [
    { title: 'Time', kind: 'nowrap', cell: (e) => clock(e.time, now) },
    { title: 'By', kind: 'long', cell: (e) => visible(who(e.actor)) },
    { title: 'Action', cell: (e) => e.action },
    { title: 'Object', kind: 'long', cell: (e) => visible(e.object) },
    {
      title: 'Result',
      cell: (e) =>
        html`<span class=${`pill ${e.status < 400 ? 'ok' : e.status < 500 ? 'warn' : 'bad'}`}><i></i>${e.status}</span>`,
    },
    { title: 'From', cell: (e) => visible(`${e.actor.address ?? ''} ${e.actor.via ?? ''}`) },
  ];
  return html`<${List} name="audit log" items=${data} error=${error} columns=${columns} keyOf=${(e) => e.seq} empty="Nothing was changed yet."
    text=${(e) => `${who(e.actor)} ${e.action} ${e.object} ${e.status} ${e.actor.address ?? ''} ${e.request_id}`}
    tools=${html`<button disabled=${count >= 5000} onClick=${() => setCount(count * 5)}>Older entries</button>`} />`;
}
