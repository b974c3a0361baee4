import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from './html.js';
import { list } from '../boot.js';
import { createPoller } from '../core/poller.js';
import { isEngineAway, readiness } from '../core/ready.js';
import { rightsOf } from '../core/rights.js';
import { clock } from '../core/format.js';
import * as route from '../core/route.js';
import { Page, useRead } from './context.js';
import { Strip } from './strip.js';
import { Containers } from './containers.js';
import { Drawer } from './drawer.js';
import { Messages, useDialogs } from './dialogs.js';
import { Volumes } from './volumes.js';
import { Ports } from './ports.js';
import { Tokens } from './tokens.js';
import { Audit } from './audit.js';

// useRoute returns the place of the address, and a function that changes it.
function useRoute() {
  const [place, setPlace] = useState(route.parse(location.hash));
  useEffect(() => {
    const changed = () => setPlace(route.parse(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  const go = useCallback((next) => {
    location.hash = route.format(next);
  }, []);
  return [place, go];
}

// interval is the time between two reads of the list: a long list is read less often.
const interval = (count) => (document.hidden ? 60_000 : count > 500 ? 5000 : count > 100 ? 3000 : 2000);

// useContainers reads the list of containers again and again. first is a read that has
// been sent already, or nothing.
function useContainers(api, first, logout) {
  const [state, setState] = useState({ list: [], online: true, loaded: false });
  const poller = useRef(null);
  useLayoutEffect(() => {
    let count = 0;
    let sent = first;
    const next = createPoller({
      read() {
        const answer = sent ?? list(api);
        sent = undefined;
        return answer;
      },
      interval: () => interval(count),
      onData: (all) => {
        count = all.length;
        setState({ list: all, online: true, loaded: true, read: Date.now() });
      },
      onError: (error) => {
        if (error.status === 401) logout('The token is no longer valid.');
        else if (error.status === 403) setState({ list: [], online: true, loaded: true, error });
        else setState((old) => ({ ...old, online: false }));
      },
    });
    poller.current = next;
    const wake = () => document.hidden || next.now();
    document.addEventListener('visibilitychange', wake);
    addEventListener('online', wake);
    return () => {
      next.stop();
      document.removeEventListener('visibilitychange', wake);
      removeEventListener('online', wake);
    };
  }, [api]);
  const refresh = useCallback(() => poller.current?.now(), []);
  return [state, refresh];
}

// useObserved returns the time of the last observation of states, or null while they are
// observed: berth does not answer, or its engine does not.
function useObserved(state, ready) {
  const away = useRef(null);
  if (!state.online) return state.read ?? null;
  if (!ready || !isEngineAway(ready)) away.current = null;
  else away.current ??= Date.now();
  return away.current;
}

const tabs = [
  { view: 'containers', title: 'Containers', show: (rights) => rights.has('read') },
  { view: 'volumes', title: 'Volumes', show: (rights) => rights.has('read') },
  { view: 'ports', title: 'Ports', show: (rights) => rights.has('read') },
  { view: 'tokens', title: 'Tokens', show: (rights) => rights.node('admin') },
  { view: 'audit', title: 'Audit', show: (rights) => rights.node('admin') },
];

const panes = { volumes: Volumes, ports: Ports, tokens: Tokens, audit: Audit };

// Screen is the page of one token.
export function Screen({ api, self, first, logout }) {
  const rights = useMemo(() => rightsOf(self), [self]);
  const [place, go] = useRoute();
  const [state, refresh] = useContainers(api, first, logout);
  const ready = useRead(() => readiness(api), [api], 5);
  const observed = useObserved(state, ready.data);
  const { messages, question, say, fail, clear, confirm } = useDialogs();
  const page = useMemo(
    () => ({ api, self, rights, online: state.online, observed, say, fail, clear, confirm, refresh, go, list: state.list }),
    [api, self, rights, state, observed, go],
  );
  const shown = tabs.filter((tab) => tab.show(rights));
  const view = shown.some((tab) => tab.view === place.view) ? place.view : shown[0]?.view;
  const Pane = panes[view];
  return html`<${Page.Provider} value=${page}><${Messages.Provider} value=${messages}>
    <${Strip} logout=${logout} ready=${ready.data} read=${state.read} />
    <div class=${`connection ${state.online ? 'on' : 'off'}`} role="status">
      ${state.online ? '' : `The connection to berth is lost. States are those of ${state.read ? clock(state.read) : 'before'}. Connecting again… If this lasts, check that berth runs on its host: systemctl status berth.`}
    </div>
    <nav class="tabs" aria-label="Lists">
      ${shown.map(
        (tab) =>
          html`<a href=${route.format({ view: tab.view })} aria-current=${tab.view === view ? 'page' : undefined}>
            ${tab.title}${tab.view === 'containers' && state.loaded ? html` <span class="count">${state.list.length}</span>` : ''}
          </a>`,
      )}
    </nav>
    <div class=${`panes ${place.view === 'containers' && place.id ? 'with-drawer' : ''}`}>
      <main>
        ${!shown.length && html`<p class="empty">This token may not read anything here.</p>`}
        ${view === 'containers' && html`<${Containers} state=${state} selected=${place.id} />`}
        ${Pane && html`<${Pane} place=${place} />`}
      </main>
      ${view === 'containers' && place.id && html`<${Drawer} key=${place.id} id=${place.id} tab=${place.tab} />`}
    </div>
    ${messages} ${question}
  <//><//>`;
}
