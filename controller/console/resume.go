package console

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	v1 "berth/api/v1"
)

// slack is how far before the last line a resumed stream begins. Lines of stdout and
// stderr may be out of order by less than that.
const slack = 200 * time.Millisecond

// resume is the position where a stream begins, and the lines that it will repeat.
type resume struct {
	since time.Time      // exclusive; zero means from the beginning
	until time.Time      // later lines are not repeated
	seen  map[uint64]int // how often the journal has each line, by hash
	seed  maphash.Seed

	newest, last time.Time     // the newest and the last time among the lines of this stream
	tolerance    time.Duration // by how much a new line may be older than the line before it
}

// resume returns the position where the next stream of t begins. It reports output that
// can no longer be read.
func (p *pump) resume(ctx context.Context, t Target) (*resume, error) {
	last, err := p.m.sink.Begin(p.k.id, p.role(), logOf(t))
	if err != nil {
		return nil, err
	}
	if last.Container != "" && last.Container != logOf(t) && !last.Complete {
		p.reportGap(last.Last, fromOf(t), "the container was removed before its output was read")
	}
	if last.Fresh {
		return &resume{}, nil
	}
	if last.Last.After(time.Now()) { // the clock was set back: lines that were not read may be older than those that were
		return p.repeat(ctx, time.Time{}, last.Last)
	}
	if !p.exited && (t.OwnLog || !last.Last.Before(fromOf(t))) { // otherwise no line of this run was read yet, or all but the last
		p.lookForGap(ctx, t, last.Last)
	}
	since := last.Last
	if !p.open.IsZero() && p.open.Before(since) {
		since = p.open
	}
	return p.repeat(ctx, since.Add(-slack), last.Last)
}

// repeat returns a resume that knows the journal's lines from since to last.
func (p *pump) repeat(ctx context.Context, since, last time.Time) (*resume, error) {
	r := &resume{until: last, seen: map[uint64]int{}, seed: maphash.MakeSeed()}
	if !since.IsZero() {
		r.since = since.Add(-1)
	}
	err := p.m.sink.Since(ctx, p.k.id, p.role(), since, func(l v1.Line) bool {
		if !l.Message {
			r.seen[r.hash(l)]++
		}
		return true
	})
	return r, err
}

// goesBack reports whether a line is older than the line before it in the stream, and may
// be a repetition. Docker before 23 repeats a whole log file when it rotates it under a
// follower. The pieces of one line have the same time and are no repetition.
func (r *resume) goesBack(l line, open time.Time) bool {
	back := l.Time.Before(r.last.Add(-r.tolerance)) && !l.Time.Equal(open)
	r.last = l.Time
	if l.Time.After(r.newest) {
		r.newest = l.Time
	}
	return back
}

// rewind waits until the journal has all lines and makes r know the journal's lines from l on, which
// the stream may repeat. A line that the journal does not have is new, even if the
// clock was set back. If l itself is new, stdout and stderr are out of order, and r
// tolerates slack from then on.
func (p *pump) rewind(ctx context.Context, lines chan<- item, r *resume, l line) error {
	written := make(chan struct{})
	if err := put(ctx, lines, item{written: written}); err != nil {
		return err
	}
	select {
	case <-written:
	case <-ctx.Done():
		return ctx.Err()
	}
	again, err := p.repeat(ctx, l.Time, r.newest)
	if err != nil {
		return err
	}
	r.seen, r.seed, r.until = again.seen, again.seed, again.until
	if r.seen[r.hash(v1.Line{Time: l.Time, Data: l.Data, Partial: l.Partial})] == 0 {
		r.tolerance = slack
	}
	return nil
}

// repeated reports whether the journal already has a line. It counts each line of the
// journal once.
func (r *resume) repeated(l v1.Line) bool {
	if len(r.seen) == 0 {
		return false
	}
	if l.Time.After(r.until.Add(slack)) {
		r.seen = nil
		return false
	}
	h := r.hash(l)
	n := r.seen[h]
	if n == 0 {
		return false
	}
	if n--; n == 0 {
		delete(r.seen, h)
	} else {
		r.seen[h] = n
	}
	return true
}

func (r *resume) hash(l v1.Line) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	var at [9]byte
	binary.LittleEndian.PutUint64(at[:], uint64(l.Time.UnixNano()))
	if l.Partial {
		at[8] = 1
	}
	h.Write(at[:])
	h.Write(l.Data)
	return h.Sum64()
}

// lookForGap reports lines that the engine deleted before they were read: then its oldest
// line is newer than the last line of the journal.
func (p *pump) lookForGap(ctx context.Context, t Target, last time.Time) {
	var oldest time.Time
	t.Ended = true // do not follow the log
	err := p.m.engine.Logs(ctx, t, time.Time{}, func(l line) error {
		oldest = l.Time
		return errEnough
	})
	if !errors.Is(err, errEnough) || !oldest.After(last) || oldest.Equal(p.gapTo) {
		return
	}
	p.gapTo = oldest
	p.reportGap(last, oldest, "the engine rotated its log before berth read it")
}

// errEnough ends a stream from its callback.
var errEnough = errors.New("enough was read")

// reportGap appends a message in place of lost lines.
func (p *pump) reportGap(from, to time.Time, why string) { p.append([]v1.Line{gap(from, to, why)}) }

// gap returns the message that output between two times is missing; from may be zero.
func gap(from, to time.Time, why string) v1.Line {
	between := "before " + to.UTC().Format(time.RFC3339)
	if !from.IsZero() {
		between = fmt.Sprintf("between %s and %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	text := fmt.Sprintf("console output %s is missing: %s", between, why)
	return v1.Line{Time: to, Data: []byte(text), Message: true}
}
