package journal

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
)

// Cursor is a place in the journal of a container, for clients: how far one has read. The zero Cursor
// is before the first line of any journal.
type Cursor struct {
	Journal string // its id
	Offset  int64
}

// beginning is the text of the zero Cursor.
const beginning = "0-0"

// ParseCursor parses the text of a Cursor.
func ParseCursor(text string) (c Cursor, ok bool) {
	if text == beginning {
		return c, true
	}
	id, offset, _ := strings.Cut(text, "-")
	off, err := strconv.ParseUint(offset, 10, 63)
	return Cursor{id, int64(off)}, err == nil && isID(id)
}

// String returns "<journal id>-<offset>".
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return beginning
	}
	return c.Journal + "-" + strconv.FormatInt(c.Offset, 10)
}

func isID(id string) bool {
	return len(id) > 0 && len(id) <= 16 && strings.Trim(id, "0123456789abcdef") == ""
}

// Cursor returns the cursor of an offset.
func (j *Journal) Cursor(off int64) Cursor {
	if off == 0 {
		return Cursor{}
	}
	return Cursor{j.id, off}
}

// Find returns the offset of a cursor. It is false if the journal has no line that ends there and never
// had: the cursor is of another journal, or the end of this one was lost.
func (j *Journal) Find(c Cursor) (off int64, known bool, err error) {
	end := j.End().Offset
	if c == (Cursor{}) {
		return 0, true, nil
	}
	if c.Journal != j.id || c.Offset > end {
		return 0, false, nil
	}
	for _, s := range j.segments("") {
		if s.start < c.Offset && c.Offset <= s.end {
			before := make([]byte, 1)
			err := j.readAt(s, before, c.Offset-1)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return 0, false, err
			}
			if err == nil && before[0] != '\n' {
				return 0, false, nil
			}
		}
	}
	return c.Offset, true, nil
}

// Removed reports whether lines of a role at an offset are no longer kept; an empty role is both.
func (j *Journal) Removed(role string, off int64) bool {
	at := off
	for _, s := range j.segments("") {
		own := role == "" || s.role == role
		switch {
		case role != "" && own && s.start <= off:
			return false // the oldest segments of a role are removed first
		case s.end <= off:
		case s.start > at:
			return true
		case own:
			return false
		default:
			at = s.end
		}
	}
	return false
}
