package stream

import (
	"encoding/binary"
	"time"
)

// times is a list of rising times. It keeps their differences, to take a few bytes for
// each.
type times struct {
	deltas    []byte // varints, ns
	last      int64  // of deltas, Unix ns
	read      int    // offset in deltas
	readTime  int64  // of the last time that was read
	someFound bool   // next has returned one
}

func (t *times) add(at time.Time) {
	t.deltas = binary.AppendVarint(t.deltas, at.UnixNano()-t.last)
	t.last = at.UnixNano()
}

// next appends the next times as the inside of a JSON array: a piece of some maxPiece
// bytes, or nothing at the end.
func (t *times) next(b []byte) []byte {
	for from := len(b); t.read < len(t.deltas) && len(b)-from < maxPiece; t.someFound = true {
		delta, n := binary.Varint(t.deltas[t.read:])
		t.read, t.readTime = t.read+n, t.readTime+delta
		if t.someFound {
			b = append(b, ',')
		}
		b = time.Unix(0, t.readTime).UTC().AppendFormat(append(b, '"'), time.RFC3339Nano)
		b = append(b, '"')
	}
	return b
}
