// Splits console lines at their ANSI sequences. Colours become the names of classes;
// every other sequence is dropped, and so is everything that could move the cursor or
// change the title of a window. Text stays text: a caller makes nodes of it, never HTML.
import { visible } from './text.js';

// maxLine bounds the characters that one line shows.
export const maxLine = 4096;

// CSI sequences, strings that end with BEL or ST (titles, links), and two-byte escapes.
// A sequence that the line ends in is dropped too.
const sequence =
  // eslint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~]?)|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]?/g;

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

// plain is the style of a line's beginning.
export const plain = Object.freeze({ fg: '', bg: '', bold: false, dim: false, italic: false, underline: false, inverse: false });

// color256 returns the name of a colour of the 256-colour palette. The page has a class
// for each of the 16 named ones; the others become the nearest of these.
function color256(n) {
  if (!(n >= 0 && n < 256)) return '';
  if (n < 8) return names[n];
  if (n < 16) return `bright-${names[n - 8]}`;
  if (n >= 232) return n < 240 ? 'bright-black' : n < 250 ? 'white' : 'bright-white';
  const cube = n - 16;
  return nearest(Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51);
}

// nearest returns the name of the named colour that is nearest to an RGB value.
function nearest(r, g, b) {
  const high = Math.max(r, g, b);
  if (high < 60) return 'bright-black';
  const on = (v) => (v > high * 0.6 ? 1 : 0);
  const name = names[on(r) | (on(g) << 1) | (on(b) << 2)];
  return high > 190 ? `bright-${name}` : name;
}

// extended reads the parameters behind 38 or 48. It returns the colour and how many
// parameters it took.
function extended(codes, at) {
  if (codes[at] === 5) return [color256(codes[at + 1]), 2];
  if (codes[at] === 2) return [nearest(codes[at + 1] || 0, codes[at + 2] || 0, codes[at + 3] || 0), 4];
  return ['', codes.length];
}

const switches = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  39: { fg: '' },
  49: { bg: '' },
};

// apply returns the style after one SGR sequence with these parameters.
export function apply(style, parameters) {
  const codes = parameters.split(/[;:]/, 32).map((text) => Number(text) || 0);
  let next = style;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i];
    if (code === 0) next = plain;
    else if (switches[code]) next = { ...next, ...switches[code] };
    else if (code >= 30 && code <= 37) next = { ...next, fg: names[code - 30] };
    else if (code >= 40 && code <= 47) next = { ...next, bg: names[code - 40] };
    else if (code >= 90 && code <= 97) next = { ...next, fg: `bright-${names[code - 90]}` };
    else if (code >= 100 && code <= 107) next = { ...next, bg: `bright-${names[code - 100]}` };
    else if (code === 38 || code === 48) {
      const [color, taken] = extended(codes, i + 1);
      next = { ...next, [code === 38 ? 'fg' : 'bg']: color };
      i += taken;
    }
  }
  return next;
}

// classes returns the class names of a style, separated by spaces; empty: plain.
export function classes(style) {
  const list = [];
  if (style.fg) list.push(`fg-${style.fg}`);
  if (style.bg) list.push(`bg-${style.bg}`);
  for (const name of ['bold', 'dim', 'italic', 'underline', 'inverse']) if (style[name]) list.push(name);
  return list.join(' ');
}

// strip returns a line without its sequences.
export const strip = (line) => line.replace(sequence, '');

// overwrite returns what a terminal shows of a line with carriage returns: the text
// behind the last one, as progress bars use it.
function overwrite(line) {
  const text = line.replace(/\r+$/, '');
  return text.slice(text.lastIndexOf('\r') + 1);
}

// spans returns a line as [{text, classes}], and the style behind it. Characters that
// do harm are named; a line beyond maxLine is cut, and its last span reports that.
// hidden is the number of characters that the caller has cut already.
export function spans(line, style = plain, hidden = 0) {
  const all = overwrite(line);
  const shown = all.length > maxLine ? all.slice(0, maxLine) : all;
  const list = [];
  const add = (text) => {
    if (text) list.push({ text: visible(text.replaceAll('\t', '    ')), classes: classes(style) });
  };
  let from = 0;
  for (const match of shown.matchAll(sequence)) {
    add(shown.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === 'm' && /^[\d;:]*$/.test(match[1])) style = apply(style, match[1]);
  }
  add(shown.slice(from));
  hidden += all.length - shown.length;
  if (hidden > 0) list.push({ text: `… ${hidden.toLocaleString('en')} more characters`, classes: 'cut' });
  return { spans: list, style };
}
