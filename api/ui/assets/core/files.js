// Paths and names of files in volumes.

// join returns a path below a folder; the root is the empty path.
export const join = (folder, name) => (folder ? `${folder}/${name}` : name);

// parent returns the folder of a path.
export const parent = (at) => at.split('/').slice(0, -1).join('/');

// crumbs returns [{name, path}] of a folder and those above, the root first.
export function crumbs(at) {
  const parts = at.split('/').filter(Boolean);
  return [{ name: 'volume', path: '' }, ...parts.map((name, i) => ({ name, path: parts.slice(0, i + 1).join('/') }))];
}

// isArchive reports whether a file can be extracted, by its name.
export const isArchive = (name) => /\.(?:zip|tar|tar\.gz|tgz|tar\.bz2|tbz2?|tar\.zst)$/i.test(name);

// maxEdit bounds the bytes of a file that is opened in the editor.
export const maxEdit = 512 * 1024;

// lineEnd returns the line end of a text: CRLF if every line has it. An editor of the
// browser knows only LF.
export const lineEnd = (text) => (text.includes('\r\n') && !/(?:^|[^\r])\n/.test(text) ? '\r\n' : '\n');

// toEditor returns a text with LF alone, and fromEditor with another line end.
export const toEditor = (text) => text.replace(/\r\n?/g, '\n');
export const fromEditor = (text, end) => (end === '\n' ? text : text.replaceAll('\n', end));

// decode returns the text of a file, or nothing if its bytes are not UTF-8 text.
export function decode(buffer) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(buffer);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}
