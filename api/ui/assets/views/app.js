import { html, useCallback, useEffect, useMemo, useState } from './html.js';
import { createAPI } from '../core/api.js';
import { createSession } from '../core/session.js';
import { Login } from './login.js';
import { Screen } from './screen.js';

// App is the page: the login, or the screen of one token.
export function App({ base }) {
  const session = useMemo(() => createSession(globalThis.sessionStorage), []);
  const [state, setState] = useState({ phase: 'begin', token: session.token });

  const login = useCallback(async (token) => {
    const api = createAPI({ base, token });
    const self = await api.get('auth/self');
    session.keep(token);
    setState({ phase: 'in', api, self });
  }, []);

  const logout = useCallback((reason = '') => {
    session.keep('');
    setState({ phase: 'out', reason });
  }, []);

  // With the token of this tab, or without any if the daemon wants none.
  useEffect(() => {
    login(session.token).catch((error) => {
      const reason = error.status === 401 && session.token ? 'The token is no longer valid.' : '';
      if (error.status === 401) logout(reason);
      else setState({ phase: 'out', reason: error.message, token: session.token });
    });
  }, []);

  if (state.phase === 'begin') return html`<p class="begin" role="status">Connecting to berth…</p>`;
  if (state.phase === 'out') return html`<${Login} login=${login} reason=${state.reason} token=${state.token} />`;
  return html`<${Screen} api=${state.api} self=${state.self} logout=${logout} />`;
}
