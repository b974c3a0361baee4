package stream

import (
	"strconv"
	"strings"
	"time"

	v1 "berth/api/v1"
)

// LineCursor is how far a client has read the consoles of a container: for each the
// time, as v1.Line.At, of the last line that it has; 0: none. Times are Unix ns.
type LineCursor struct{ Install, Server int64 }

// ParseLineCursor parses the text of a LineCursor.
func ParseLineCursor(text string) (c LineCursor, ok bool) {
	install, server, ok := strings.Cut(text, ".")
	if !ok {
		return c, false
	}
	var bad, worse error
	c.Install, bad = strconv.ParseInt(install, 10, 64)
	c.Server, worse = strconv.ParseInt(server, 10, 64)
	return c, bad == nil && worse == nil && c.Install >= 0 && c.Server >= 0
}

// String returns "<install>.<server>".
func (c LineCursor) String() string { return string(c.append(nil)) }

func (c LineCursor) append(b []byte) []byte {
	b = append(strconv.AppendInt(b, c.Install, 10), '.')
	return strconv.AppendInt(b, c.Server, 10)
}

// of returns the time of one console.
func (c LineCursor) of(role string) int64 {
	if role == v1.InstallConsole {
		return c.Install
	}
	return c.Server
}

func (c *LineCursor) set(role string, at int64) {
	if role == v1.InstallConsole {
		c.Install = at
	} else {
		c.Server = at
	}
}

// AddLine adds a cursor to the JSON of a message: how far its receiver has read.
func AddLine(message []byte, c LineCursor) []byte { return addCursor(message, "line", c) }

func addCursor(message []byte, name string, c LineCursor) []byte {
	b := append(message[:len(message)-1], `,"`...)
	b = append(append(b, name...), `":"`...)
	return append(c.append(b), '"', '}')
}

// EncodeMissing returns the JSON of a message about lines that the client cannot get:
// those between two cursors.
func EncodeMissing(text string, from, to LineCursor, at time.Time) []byte {
	return AddLine(addCursor(Encode(v1.EventMessage, "", []byte(text), at, 0), "since_line", from), to)
}

// start is where a reader of a console begins.
type start struct {
	pos  position // without its line
	held []byte   // see log.held
	gap  gapKind  // lines before pos that the reader has not got
}

type gapKind int

const (
	noGap      gapKind = iota
	removedGap         // lines behind the reader's cursor are no longer kept
	unknownGap         // the journal has no line with the cursor's time, nor had it
)

// start returns the place behind the line with a time, or the oldest line that is
// kept if there is no such line. It reads the disk.
func (g *log) start(at int64) (s start, err error) {
	oldest, removed := g.journal.Oldest()
	s.pos = position{off: oldest, at: removed}
	if at == removed {
		return s, nil
	}
	l, behind, ok, err := g.journal.At(time.Unix(0, at))
	switch {
	case err != nil:
		return s, err
	case ok && at != 0:
		return start{pos: position{off: behind, at: at}, held: heldBack(l, nil)}, nil
	case at < removed:
		s.gap = removedGap
	default:
		s.gap = unknownGap
	}
	return s, nil
}

// missingText returns the text of the message about gaps in the consoles of a
// container; it is empty if there is none.
func missingText(starts ...start) string {
	text, last := "", int64(0)
	for _, s := range starts {
		switch s.gap {
		case unknownGap:
			return "the container has no console line at since_line: all lines that are kept follow"
		case removedGap:
			last = max(last, s.pos.at)
			text = "console lines up to " + time.Unix(0, last).UTC().Format(time.RFC3339Nano) + " are missing: they are no longer kept"
		}
	}
	return text
}
