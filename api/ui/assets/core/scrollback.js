// The last lines of a console, in bounded memory.
import { maxLine, plain, spans, strip } from './ansi.js';
import { createMarks, isLater, lineOf, placeOf } from './runs.js';

const escape = '\u001b';

// createScrollback keeps at most maxLines lines, each with at most maxLine characters
// and the count of those left out, and marks between them.
export function createScrollback({ maxLines = 5000 } = {}) {
  const lines = [];
  const marks = createMarks();
  let style = plain;
  let open; // the line that has no end yet
  let next = 1; // number of the next line
  let dropped = 0;
  let revision = 0; // of lines that were not added at the end
  let loaded = false; // the last lines of before were appended
  let complete = false; // there are no lines before the first one

  // extend adds text to a line, within its bound.
  const extend = (line, text) => {
    const space = Math.max(0, maxLine - line.raw.length);
    line.raw += text.slice(0, space);
    line.hidden += Math.max(0, text.length - space);
    line.drawn = undefined;
    if (line !== lines.at(-1)) revision += 1;
  };
  // finish computes the style that the next line begins with.
  const finish = () => {
    if (open?.raw.includes(escape)) style = spans(open.raw, open.style).style;
    open = undefined;
  };
  const trim = () => {
    const excess = lines.length - maxLines;
    if (excess <= 0) return;
    lines.splice(0, excess);
    dropped += excess;
    complete = false;
  };
  // begin adds a line of output: before the marks that are later than it.
  const begin = (time) => {
    const later = [];
    while (lines.at(-1)?.kind === 'mark' && isLater(lines.at(-1), time)) later.unshift(lines.pop());
    open = { number: next++, time, kind: 'output', raw: '', hidden: 0, style };
    lines.push(open);
    for (const mark of later) lines.push({ ...mark, number: next++ });
    if (later.length) revision += 1;
  };
  // place adds a mark between the lines. One before the first line waits for older lines.
  const place = (mark) => {
    const at = placeOf(lines, mark);
    if (!loaded || (at === 0 && !complete)) return;
    if (at === lines.length) {
      lines.push(lineOf(mark, next++, plain));
    } else {
      const before = lines[at - 1]?.number ?? lines[at].number - 1;
      lines.splice(at, 0, lineOf(mark, (before + lines[at].number) / 2, plain));
      revision += 1;
    }
    mark.placed = true;
  };
  const placeAll = () => marks.waiting().forEach(place);
  // reword changes the text of a mark.
  const reword = ({ key, text }) => {
    const line = lines.find((one) => one.key === key);
    if (!line) return;
    Object.assign(line, { raw: text, drawn: undefined });
    revision += 1;
  };

  return {
    lines,
    // dropped is the number of lines that were removed since the beginning.
    get dropped() {
      return dropped;
    },
    // revision grows when a line was added or changed above the last one.
    get revision() {
      return revision;
    },
    // append adds output: lines with their ends, or parts of lines. times are those of
    // the lines that begin in it, or one time for all.
    append(text, times) {
      const parts = text.split('\n');
      const tail = parts.pop();
      const timeOf = (i) => (Array.isArray(times) ? times[i] : times);
      parts.forEach((part, i) => {
        if (!open) begin(timeOf(i));
        extend(open, part);
        finish();
      });
      if (tail) {
        if (!open) begin(timeOf(parts.length));
        extend(open, tail);
      }
      trim();
    },
    // load is append for the last lines of before. all reports whether there are no
    // others.
    load(text, times, all) {
      this.append(text, times);
      loaded = true;
      complete = all;
      placeAll();
    },
    // divide marks transitions between the lines, each once.
    divide(transitions) {
      marks.add(transitions).forEach(reword);
      placeAll();
      trim();
    },
    marksBetween: marks.between,
    // notice adds a sentence of berth or of the page between the lines.
    notice(text, time) {
      finish();
      lines.push({ number: next++, time, kind: 'notice', raw: text, hidden: 0, style: plain });
      trim();
    },
  };
}

// draw returns the spans of a line, which are computed once.
export function draw(line) {
  line.drawn ??= spans(line.raw, line.style, line.hidden).spans;
  return line.drawn;
}

// ofPage returns the lines of a page of the journal, numbered downward from `before`, with
// marks between them.
export function ofPage(page, before, marks = []) {
  let style = plain;
  const list = page.map(({ time, data }, i) => {
    const raw = data.slice(0, maxLine);
    const line = { number: before - page.length + i, time, kind: 'output', raw, hidden: data.length - raw.length, style };
    if (raw.includes(escape)) style = spans(raw, style).style;
    return line;
  });
  for (const mark of marks) {
    const at = placeOf(list, mark);
    const above = list[at - 1]?.number ?? (list[at]?.number ?? before) - 1;
    list.splice(at, 0, lineOf(mark, (above + (list[at]?.number ?? before)) / 2, plain));
  }
  return list;
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
