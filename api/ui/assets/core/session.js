// The token of this tab. It is in no cookie and in no storage that outlives the tab.
const key = 'berth.token';

// createSession wraps a storage, which a browser may refuse to a page.
export function createSession(storage) {
  let token = read();
  function read() {
    try {
      return storage.getItem(key) ?? '';
    } catch {
      return '';
    }
  }
  return {
    get token() {
      return token;
    },
    keep(next) {
      token = next;
      try {
        if (next) storage.setItem(key, next);
        else storage.removeItem(key);
      } catch {
        // The token is kept in memory until the page is left.
      }
    },
  };
}

// isToken reports whether a text has the form of a token.
export const isToken = (text) => /^berth_[0-9a-f]{32}$/.test(text);

// shared returns {token, id} of the fragment of a link that shares a container, or null.
// A fragment is not sent to any server.
export function shared(hash) {
  const [, token, id] = /^#\/link\/(berth_[0-9a-f]{32})\/([^/]+)$/.exec(hash) ?? [];
  return token ? { token, id } : null;
}

// linkOf returns the link that opens a container with a token. base is the address of the page.
export const linkOf = (base, token, id) => new URL(`#/link/${token}/${encodeURIComponent(id)}`, base).href;
