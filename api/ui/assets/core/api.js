// Calls of the public API. Nothing here knows of the page.
export const vendorType = 'Application/vnd.berthv1+json';

// APIError is a response that is no success.
export class APIError extends Error {
  constructor(status, code, message) {
    super(message);
    this.name = 'APIError';
    this.status = status;
    this.code = code;
  }
}

// OfflineError reports that the daemon did not answer.
export class OfflineError extends Error {
  constructor(cause) {
    super('berth does not answer', { cause });
    this.name = 'OfflineError';
    this.status = 0;
  }
}

// path joins segments to a path, each percent-encoded.
export const path = (...segments) => segments.map(encodeURIComponent).join('/');

// query returns ?a=b of the values that are set.
export function query(values) {
  const set = Object.entries(values ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return set.length ? `?${new URLSearchParams(set)}` : '';
}

async function failure(response) {
  const body = await response.json().catch(() => ({}));
  const text = typeof body.error === 'string' ? body.error : `The response has the status ${response.status}`;
  return new APIError(response.status, response.headers.get('X-Error-Code') ?? '', text);
}

// createAPI returns the calls of one daemon with one token. base is the address of the
// API, with a slash at its end. Each call has `timeout` milliseconds.
export function createAPI({ base, token = '', fetch = globalThis.fetch, timeout = 15_000 }) {
  async function send(method, to, { body, raw, headers: more, signal, limit = timeout } = {}) {
    const headers = { Accept: vendorType, ...more };
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const deadline = limit ? AbortSignal.timeout(limit) : undefined;
    const signals = [signal, deadline].filter(Boolean);
    const request = {
      method,
      headers,
      body: raw ?? (body === undefined ? undefined : JSON.stringify(body)),
      signal: signals.length > 1 ? AbortSignal.any(signals) : signals[0],
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
    };
    const attempt = () => fetch(new URL(to, base), request);
    let response;
    try {
      // Browsers abort requests when the host gets or loses a network, as with each
      // container that starts beside them: what only reads is sent once more.
      response = await attempt().catch((error) =>
        method === 'GET' && !request.signal?.aborted ? attempt() : Promise.reject(error),
      );
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new OfflineError(error);
    }
    if (!response.ok) throw await failure(response);
    return response;
  }
  async function json(method, to, options) {
    const response = await send(method, to, options);
    try {
      return await response.json();
    } catch (error) {
      throw new OfflineError(error); // the connection was lost within the body
    }
  }
  return {
    base,
    token,
    send,
    get: (to, values, options) => json('GET', to + query(values), options),
    post: (to, body, options) => json('POST', to, { body, ...options }),
    put: (to, body, options) => json('PUT', to, { body, ...options }),
    patch: (to, body, options) => json('PATCH', to, { body, ...options }),
    remove: (to, options) => json('DELETE', to, options),
    // ticket returns a token for one request, for an address that has to hold a token.
    ticket: async () => (token ? (await json('POST', 'auth/tickets')).token : ''),
  };
}

// link returns the absolute address of a download, with a token for this one request.
export async function link(api, to, values) {
  return new URL(to + query({ ...values, token: await api.ticket() }), api.base).href;
}

// all reads a list that may come page by page.
export async function all(api, to, name, values) {
  const list = [];
  let next;
  do {
    const page = await api.get(to, { ...values, continue: next });
    list.push(...page[name]);
    next = page.continue;
  } while (next);
  return list;
}
