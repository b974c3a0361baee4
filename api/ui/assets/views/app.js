import { html, useCallback, useLayoutEffect, useState } from './html.js';
import { createAPI } from '../core/api.js';
import { Login } from './login.js';
import { Screen } from './screen.js';

// App is the page: the login, or the screen of one token. first are the requests that
// were sent with the token of this tab, or without any if the daemon wants none.
export function App({ session, first }) {
  const [state, setState] = useState({ phase: 'begin' });

  const login = useCallback(async (token) => {
    const api = createAPI({ base: first.api.base, token });
    const self = await api.get('auth/self');
    session.keep(token);
    setState({ phase: 'in', api, self });
  }, []);

  const logout = useCallback((reason = '') => {
    session.keep('');
    setState({ phase: 'out', reason });
  }, []);

  useLayoutEffect(() => {
    const failed = (error) => {
      const reason = error.status === 401 && session.token ? 'The token is no longer valid.' : '';
      if (error.status === 401) logout(reason);
      else setState({ phase: 'out', reason: error.message, token: session.token });
    };
    first.self.then((self) => setState({ phase: 'in', api: first.api, self, list: first.list }), failed);
  }, []);

  if (state.phase === 'begin') return html`<p class="begin" role="status">Connecting to berth…</p>`;
  if (state.phase === 'out') return html`<${Login} login=${login} reason=${state.reason} token=${state.token} />`;
  return html`<${Screen} api=${state.api} self=${state.self} first=${state.list} logout=${logout} />`;
}
