// Draws the lines of a console into an element. It makes nodes and no HTML. It holds at
// most `most` lines, and draws once a frame, so output of any speed costs the same.
import { clock } from '../core/format.js';
import { draw, mark } from '../core/scrollback.js';

const most = 1000; // lines in the element
const chunk = 120; // lines that one frame adds
const nearTop = 40; // pixels from the first line at which older lines are read

function nodeOf(line, needle) {
  const row = document.createElement('div');
  row.className = line.kind === 'output' ? 'line' : `line ${line.kind}`;
  row.dataset.number = line.number;
  if (line.time) row.title = clock(line.time);
  if (line.kind === 'mark') {
    row.dataset.time = clock(line.time);
  }
  for (const { text, classes, hit } of mark(draw(line), needle)) {
    const span = document.createElement(hit ? 'mark' : 'span');
    if (classes) span.className = classes;
    span.textContent = text;
    row.append(span);
  }
  if (!row.firstChild) row.textContent = '\u200b'; // so that an empty line has a height
  return row;
}

// remark draws the lines in element again, with other marks.
function remark(element, scrollback, needle) {
  const known = new Map(scrollback.lines.map((line) => [line.number, line]));
  for (const row of [...element.children]) {
    const line = row.line ?? known.get(Number(row.dataset.number));
    if (line) row.replaceWith(Object.assign(nodeOf(line, needle), { line: row.line }));
  }
}

// focusMark moves the focus by some marks, and returns [its place, the number of marks].
function focusMark(element, step) {
  const marks = [...element.querySelectorAll('mark')];
  if (!marks.length) return [0, 0];
  const now = element.querySelector('mark.now');
  const first = step > 0 ? 0 : marks.length - 1;
  const at = now ? (marks.indexOf(now) + step + marks.length) % marks.length : first;
  now?.classList.remove('now');
  marks[at].classList.add('now');
  marks[at].scrollIntoView({ block: 'center' });
  return [at + 1, marks.length];
}

// unseen returns the lines behind number `last`, at most `most`; the line of that number
// too, since it may have grown.
function unseen(all, last) {
  let from = all.length;
  while (from > 0 && all[from - 1].number >= last && all.length - from < most) from -= 1;
  return all.slice(from);
}

// createLines shows scrollback in element. It follows the end until the user scrolls up;
// onFollow receives whether it follows, and how many lines are not shown; onTop is called when the
// user scrolls to the first line.
export function createLines(element, scrollback, onFollow, onTop) {
  let following = true;
  let needle = '';
  let last = 0; // number of the last line in the element
  let frame = 0;
  let closed = false;
  let revision = 0; // of scrollback when all lines were drawn
  let own = 0; // the scroll position that this module has set
  let height = 0; // of element at that time

  const toEnd = () => {
    element.scrollTop = element.scrollHeight;
    own = element.scrollTop;
    height = element.clientHeight;
  };
  const missing = () => Math.max(0, (scrollback.lines.at(-1)?.number ?? 0) - last);

  function paint() {
    frame = 0;
    if (closed) return;
    if (!following) {
      onFollow(false, missing());
      return;
    }
    if (scrollback.revision !== revision) return redraw();
    const all = scrollback.lines;
    const fresh = unseen(all, last);
    if (Number(element.lastChild?.dataset.number) === last) element.lastChild.remove();
    // Output that is faster than the screen: the lines between are not drawn.
    const shown = fresh.length > chunk * 2 ? fresh.slice(-chunk) : fresh;
    if (shown.length < fresh.length) element.replaceChildren();
    element.append(...shown.map((line) => nodeOf(line, needle)));
    for (let excess = element.childElementCount - most; excess > 0; excess--) element.firstChild.remove();
    last = all.at(-1)?.number ?? 0;
    toEnd();
    onFollow(true, 0);
  }

  const schedule = () => {
    if (!frame && !closed) frame = requestAnimationFrame(paint);
  };

  function redraw() {
    element.replaceChildren();
    last = 0;
    revision = scrollback.revision;
    paint();
  }

  const onScroll = () => {
    if (Math.abs(element.scrollTop - own) < 2) return;
    if (following && element.clientHeight !== height) return toEnd(); // the page has moved, not the user
    const end = element.scrollHeight - element.clientHeight - element.scrollTop < 4;
    if (following && !end && element.scrollTop < own) following = false;
    else if (!following && end && missing() === 0) following = true;
    own = element.scrollTop;
    schedule();
    if (!following && own < nearTop) onTop();
  };
  element.addEventListener('scroll', onScroll, { passive: true });
  redraw();

  return {
    schedule,
    // first returns the first line in the element, as {number, time}.
    first: () => Number(element.firstChild?.dataset.number ?? 0),
    // live jumps to the end and follows it.
    live() {
      following = true;
      redraw();
    },
    // freeze stops following.
    freeze() {
      following = false;
      schedule();
    },
    // search marks a text in the lines.
    search(text) {
      needle = text;
      if (following) redraw();
      else remark(element, scrollback, needle);
    },
    // prepend adds older lines above, and keeps what the user sees in its place. A scroll of the user whose
    // event is still to come stays different from `own`, so onScroll observes it.
    prepend(lines) {
      const was = element.scrollTop;
      const before = element.scrollHeight - was;
      element.prepend(...lines.map((line) => Object.assign(nodeOf(line, needle), { line })));
      while (element.childElementCount > most * 3) {
        element.lastChild.remove();
        last = Number(element.lastChild.dataset.number);
      }
      element.scrollTop = element.scrollHeight - before;
      own += element.scrollTop - was;
    },
    // reveal scrolls to the mark `step` marks away from the one in focus; it returns
    // [its place, the number of marks].
    reveal(step) {
      const place = focusMark(element, step);
      if (place[1] > 0) following = false;
      own = element.scrollTop;
      schedule();
      return place;
    },
    close() {
      closed = true;
      cancelAnimationFrame(frame);
      element.removeEventListener('scroll', onScroll);
    },
  };
}
