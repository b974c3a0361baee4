import { html, useState } from './html.js';
import { isToken } from '../core/session.js';

// Login asks for a token. After a failed connection it offers the token of before.
export function Login({ login, reason, token: before }) {
  const [token, setToken] = useState(before ?? '');
  const [error, setError] = useState(reason ?? '');
  const [busy, setBusy] = useState(false);

  async function submit(event) {
    event.preventDefault();
    const text = token.trim();
    if (text && !isToken(text)) {
      setError('A token is berth_ and 32 hexadecimal digits.');
      return;
    }
    setBusy(true);
    try {
      await login(text);
    } catch (failure) {
      setError(failure.status === 401 ? 'berth does not know this token, or it has expired.' : failure.message);
      setBusy(false);
    }
  }

  return html`<main class="login">
    <form onSubmit=${submit} class="card">
      <h1><span class="logo" aria-hidden="true">b</span> berth</h1>
      <label for="token">Token</label>
      <input
        id="token"
        type="password"
        autocomplete="off"
        spellcheck=${false}
        autofocus
        value=${token}
        aria-describedby="token-help"
        aria-invalid=${Boolean(error)}
        onInput=${(event) => setToken(event.target.value)}
      />
      <div id="token-help" class="quiet help">
        <p>On the host, <code>sudo berth token create --ttl 8h</code> prints a token. With <code>--scope read</code> it may only read.</p>
        <p>
          The administrator's token is <code>authorization.token</code> in <code>/etc/berth/berth.yaml</code>, or in the file that
          ${' '}<code>BERTH_CONFIG</code> or <code>berth serve --config</code> names. After <code>make run</code> the program is
          ${' '}<code>bin/berth</code>, and needs <code>sudo</code> only if it was started as root.
        </p>
        <p>This tab forgets the token when it is closed.</p>
      </div>
      <p class="error" role="alert">${error}</p>
      <button class="primary" disabled=${busy}>${busy ? 'Connecting…' : 'Log in'}</button>
    </form>
  </main>`;
}
