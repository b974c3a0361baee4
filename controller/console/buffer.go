package console

import (
	"context"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// buffer passes lines from the goroutine that reads a stream to the goroutine that
// writes them, so that lines which arrive together are written together. If the reader
// is too fast, it waits, and the engine keeps the rest.
type buffer struct {
	mu      sync.Mutex
	fill    lineBatch // lines to write
	spare   lineBatch // the batch taken last, whose memory is reused
	written bool      // all lines that were put are written

	filled  func()        // called after each put
	emptied chan struct{} // signalled after each take
}

// lineBatch holds lines with all their bytes in one slice.
type lineBatch struct {
	bytes []byte
	refs  []lineRef
}

// lineRef is one line of a lineBatch. It starts at the end of the line before it.
type lineRef struct {
	time    time.Time
	end     int // offset in bytes
	partial bool
}

const (
	bufferBytes = 256 << 10 // limits of a buffer: put waits while one is reached
	bufferLines = 4 << 10
	keepBytes   = 32 << 10 // larger batches are not reused
)

func newBuffer() *buffer {
	return &buffer{written: true, emptied: make(chan struct{}, 1)}
}

// put copies a line into the buffer. It waits while the buffer is full.
func (b *buffer) put(ctx context.Context, l v1.Line) error {
	for !b.tryPut(l) {
		select {
		case <-b.emptied:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.filled()
	return nil
}

func (b *buffer) tryPut(l v1.Line) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fill.bytes) >= bufferBytes || len(b.fill.refs) >= bufferLines {
		return false
	}
	b.written = false
	b.fill.bytes = append(b.fill.bytes, l.Data...)
	b.fill.refs = append(b.fill.refs, lineRef{l.Time, len(b.fill.bytes), l.Partial})
	return true
}

// flush waits until all lines are written. The writer shows that by a take that returns
// nothing. No line may be put during a flush.
func (b *buffer) flush(ctx context.Context) error {
	for !b.isWritten() {
		select {
		case <-b.emptied:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (b *buffer) isWritten() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.written
}

// take removes all lines and appends them to lines. The bytes of the lines are valid until the next take.
func (b *buffer) take(lines []v1.Line) []v1.Line {
	b.mu.Lock()
	taken := b.fill
	b.written = len(taken.refs) == 0
	b.fill, b.spare = b.spare.reset(), taken
	b.mu.Unlock()
	signal(b.emptied)
	from := 0
	for _, r := range taken.refs {
		lines = append(lines, v1.Line{Time: r.time, Data: taken.bytes[from:r.end:r.end], Partial: r.partial})
		from = r.end
	}
	return lines
}

// reset returns an empty batch. It reuses the memory unless that is large.
func (b lineBatch) reset() lineBatch {
	if cap(b.bytes) > keepBytes || cap(b.refs) > keepBytes/32 {
		return lineBatch{}
	}
	return lineBatch{b.bytes[:0], b.refs[:0]}
}
