// The last lines of a console, in bounded memory.
import { maxLine, plain, spans, strip } from './ansi.js';

const escape = '\u001b';

// createScrollback keeps at most maxLines lines, each with at most maxLine characters
// and the count of those left out.
export function createScrollback({ maxLines = 5000 } = {}) {
  const lines = [];
  let style = plain;
  let open = false; // the last line has no end yet
  let next = 1; // number of the next line
  let dropped = 0;

  // extend adds text to a line, within its bound.
  const extend = (line, text) => {
    const space = Math.max(0, maxLine - line.raw.length);
    line.raw += text.slice(0, space);
    line.hidden += Math.max(0, text.length - space);
    line.drawn = undefined;
  };
  // finish computes the style that the next line begins with.
  const finish = (line) => {
    if (line.raw.includes(escape)) style = spans(line.raw, line.style).style;
  };
  const trim = () => {
    const excess = lines.length - maxLines;
    if (excess <= 0) return;
    lines.splice(0, excess);
    dropped += excess;
  };

  return {
    lines,
    // dropped is the number of lines that were removed since the last clear.
    get dropped() {
      return dropped;
    },
    // append adds output: lines with their ends, or parts of lines. times are those of
    // the lines that begin in it, or one time for all.
    append(text, times) {
      const parts = text.split('\n');
      const tail = parts.pop();
      const timeOf = (i) => (Array.isArray(times) ? times[i] : times);
      parts.forEach((part, i) => {
        if (open) {
          extend(lines.at(-1), part);
        } else {
          const line = { number: next++, time: timeOf(i), kind: 'output', raw: '', hidden: 0, style };
          extend(line, part);
          lines.push(line);
        }
        open = false;
        finish(lines.at(-1));
      });
      if (tail) {
        if (!open) lines.push({ number: next++, time: timeOf(parts.length), kind: 'output', raw: '', hidden: 0, style });
        extend(lines.at(-1), tail);
        open = true;
      }
      trim();
    },
    // notice adds a sentence of berth or of the page between the lines.
    notice(text, time) {
      if (open) {
        open = false;
        finish(lines.at(-1));
      }
      lines.push({ number: next++, time, kind: 'notice', raw: text, hidden: 0, style: plain });
      trim();
    },
    clear() {
      lines.length = 0;
      style = plain;
      open = false;
      dropped = 0;
    },
  };
}

// draw returns the spans of a line, which are computed once.
export function draw(line) {
  line.drawn ??= spans(line.raw, line.style, line.hidden).spans;
  return line.drawn;
}

// ofPage returns the lines of a page of the journal, numbered downward from `before`.
export function ofPage(page, before) {
  let style = plain;
  return page.map(({ time, data }, i) => {
    const raw = data.slice(0, maxLine);
    const line = { number: before - page.length + i, time, kind: 'output', raw, hidden: data.length - raw.length, style };
    if (raw.includes(escape)) style = spans(raw, style).style;
    return line;
  });
}

// matches reports whether a line contains a text, in any case, without its colours.
export const matches = (line, needle) => strip(line.raw).toLowerCase().includes(needle);

// mark splits spans at the places of a text: [{text, classes, hit}].
export function mark(list, needle) {
  if (!needle) return list;
  return list.flatMap(({ text, classes }) => {
    const lower = text.toLowerCase();
    const parts = [];
    let from = 0;
    for (let at = lower.indexOf(needle); at >= 0; at = lower.indexOf(needle, from)) {
      if (at > from) parts.push({ text: text.slice(from, at), classes });
      parts.push({ text: text.slice(at, at + needle.length), classes, hit: true });
      from = at + needle.length;
    }
    if (from < text.length) parts.push({ text: text.slice(from), classes });
    return parts;
  });
}
