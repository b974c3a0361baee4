// Sends the first requests while the browser still loads the modules that draw.
import { all, createAPI } from './core/api.js';
import { createSession, shared } from './core/session.js';

const base = new URL('..', document.baseURI).href; // of the API: the page is at ui/

// list reads all containers with their usage.
export const list = (api) => all(api, 'containers', 'containers', { stats: true });

// begin asks what the token of this tab may do, and for the containers: {api, self, list}.
function begin(token) {
  const api = createAPI({ base, token });
  const requests = { api, self: api.get('auth/self'), list: token ? list(api) : undefined };
  requests.self.catch(() => {}); // their readers handle the errors
  requests.list?.catch(() => {});
  return requests;
}

export const session = createSession(globalThis.sessionStorage);
const link = shared(location.hash);
if (link) {
  session.keep(link.token);
  history.replaceState(null, '', `#/containers/${link.id}`); // the token leaves the address
}
export const first = begin(session.token);
