package console

import (
	"context"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// buffer stands between the goroutine that reads a stream and the one that
// writes its lines, so that lines which come close together are written
// together. A reader that is too fast waits: the engine keeps the rest.
type buffer struct {
	mu     sync.Mutex
	fill   store // what is put
	spare  store // what was taken before; its memory is used again
	closed bool
	whole  bool // all that was put is written

	filled  chan struct{} // there is something, or it is closed
	emptied chan struct{}
}

// store is lines whose bytes are in one piece of memory.
type store struct {
	bytes []byte
	refs  []ref
}

type ref struct {
	at      time.Time
	end     int // in bytes
	partial bool
}

const (
	bufferBytes = 256 << 10 // put waits above it
	bufferLines = 4 << 10
	keepBytes   = 32 << 10 // of memory that is kept for later
)

func newBuffer() *buffer {
	return &buffer{whole: true, filled: make(chan struct{}, 1), emptied: make(chan struct{}, 1)}
}

// put copies a line in. It waits while too much is in.
func (b *buffer) put(ctx context.Context, l v1.Line) error {
	for !b.tryPut(l) {
		select {
		case <-b.emptied:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	signal(b.filled)
	return nil
}

func (b *buffer) tryPut(l v1.Line) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fill.bytes) >= bufferBytes || len(b.fill.refs) >= bufferLines {
		return false
	}
	b.whole = false
	b.fill.bytes = append(b.fill.bytes, l.Data...)
	b.fill.refs = append(b.fill.refs, ref{l.Time, len(b.fill.bytes), l.Partial})
	return true
}

// flush waits until all that was put is written, which the writer shows when it
// finds nothing more to take. Nothing may be put meanwhile.
func (b *buffer) flush(ctx context.Context) error {
	for !b.written() {
		select {
		case <-b.emptied:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (b *buffer) written() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.whole
}

// close says that nothing more is put.
func (b *buffer) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	signal(b.filled)
}

// take returns all that is in, appended to lines, and whether more may come
// after it. The bytes are valid until the next take.
func (b *buffer) take(lines []v1.Line) (_ []v1.Line, more bool) {
	b.mu.Lock()
	taken, more := b.fill, !b.closed
	b.whole = len(taken.refs) == 0
	b.fill, b.spare = b.spare.cleared(), taken
	b.mu.Unlock()
	signal(b.emptied)
	from := 0
	for _, r := range taken.refs {
		lines = append(lines, v1.Line{Time: r.at, Data: taken.bytes[from:r.end:r.end], Partial: r.partial})
		from = r.end
	}
	return lines, more
}

func (s store) cleared() store {
	if cap(s.bytes) > keepBytes || cap(s.refs) > keepBytes/32 {
		return store{}
	}
	return store{s.bytes[:0], s.refs[:0]}
}
