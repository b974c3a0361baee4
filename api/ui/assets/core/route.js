// The place that a user is at, in the fragment of the address: #/containers/lobby/console.
export const views = ['containers', 'volumes', 'ports', 'tokens', 'audit'];

// parse returns {view, id, tab} of a fragment.
export function parse(hash) {
  const parts = hash
    .replace(/^#?\/?/, '')
    .split('/')
    .map(decode);
  const view = views.includes(parts[0]) ? parts[0] : 'containers';
  return { view, id: parts[1] ?? '', tab: parts[2] ?? '' };
}

// format returns the fragment of a place.
export function format({ view, id, tab }) {
  return `#/${[view, id, tab].filter(Boolean).map(encodeURIComponent).join('/')}`;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
