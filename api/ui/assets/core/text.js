// Text of containers, files and users is hostile: it may hold control characters that
// hide what follows, and marks that turn the direction of a line.

// Controls, marks of direction, invisible characters, and line separators. Lone
// surrogates cannot be shown either.
const harmful =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]|[\u{e0000}-\u{e007f}]/gu;

// name returns what is shown for a harmful character: U+202E, for example.
const name = (character) => `\u27e8U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`;

// visible returns text of one line in which each harmful character is named.
export const visible = (text) => String(text ?? '').replace(harmful, name);

// visibleLines returns text of several lines, which keeps tabs and line ends.
export const visibleLines = (text) =>
  String(text ?? '').replace(harmful, (c) => (c === '\n' || c === '\t' ? c : c === '\r' ? '' : name(c)));

// shorten returns at most `most` characters of a text, and how many it leaves out.
export function shorten(text, most) {
  if (text.length <= most) return text;
  return `${text.slice(0, most)}… (${(text.length - most).toLocaleString('en')} more characters)`;
}
