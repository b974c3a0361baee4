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

// slack is how far behind the last line a stream is asked for again. Lines of
// stdout and stderr may be out of order by a little.
const slack = 200 * time.Millisecond

// resume is where a stream begins, and what it will repeat.
type resume struct {
	since time.Time      // exclusive; zero: from the beginning
	until time.Time      // no line after it is repeated
	seen  map[uint64]int // how often each line is in the journal already
	seed  maphash.Seed

	newest, last time.Time     // of the lines that this stream has brought
	tolerance    time.Duration // by which a new line may be older than the one before it
}

// resume finds out where to go on, and tells of what cannot be read any more.
func (p *pump) resume(ctx context.Context, t Target) (*resume, error) {
	last, err := p.m.sink.Begin(p.k.id, p.role(), t.ContainerID)
	if err != nil {
		return nil, err
	}
	if last.Container != "" && last.Container != t.ContainerID && !last.Whole {
		p.reportGap(last.Last, fromOf(t), "its container is gone")
	}
	if setBack(last, t) {
		return p.repeat(ctx, time.Time{}, last.Last)
	}
	if last.Fresh {
		return &resume{}, nil
	}
	if !last.Last.Before(fromOf(t)) { // else no line of this run was read yet
		p.lookForGap(ctx, t, last.Last)
	}
	since := last.Last
	if !p.open.IsZero() && p.open.Before(since) {
		since = p.open
	}
	return p.repeat(ctx, since.Add(-slack), last.Last)
}

// setBack says whether the clock was set back, so that lines which are not read
// yet may be older than ones that are: then all that the engine has is read
// again, and told by itself from what is in the journal.
func setBack(last v1.Resume, t Target) bool {
	return last.Last.After(time.Now()) || last.Fresh && last.Last.After(fromOf(t))
}

// repeat remembers the lines that a stream will bring again: from since to last.
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

// goesBack reports whether a line that a stream brings is older than the line
// before it: it may be a repetition. Docker before 23 begins a log file anew when
// it rotates it under a follower, and repeats all of it. The pieces of a line
// that is open share a time, and are no repetition.
func (r *resume) goesBack(l line, open time.Time) bool {
	back := l.Time.Before(r.last.Add(-r.tolerance)) && !l.Time.Equal(open)
	r.last = l.Time
	if l.Time.After(r.newest) {
		r.newest = l.Time
	}
	return back
}

// rewind makes r know the lines from l on that the stream may bring again: those
// in the journal, once it has all that the stream has brought so far. Lines that
// are not there are new, also where the clock was set back. If l is new, stdout
// and stderr come out of order, and are given some tolerance from then on.
func (p *pump) rewind(ctx context.Context, b *buffer, r *resume, l line) error {
	if err := b.flush(ctx); err != nil {
		return err
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

// repeated says whether a line is in the journal already.
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

// lookForGap tells of lines that the engine has thrown away before they were
// read: then its oldest is newer than the last one here.
func (p *pump) lookForGap(ctx context.Context, t Target, last time.Time) {
	var oldest time.Time
	t.Ended = true // what is there is enough
	err := p.m.engine.Logs(ctx, t, time.Time{}, func(l line) error {
		oldest = l.Time
		return errEnough
	})
	if !errors.Is(err, errEnough) || !oldest.After(last) || oldest.Equal(p.gapTo) {
		return
	}
	p.gapTo = oldest
	p.reportGap(last, oldest, "the engine did not keep it")
}

var errEnough = errors.New("enough was read")

// reportGap puts a message in the place of lines that are lost.
func (p *pump) reportGap(from, to time.Time, why string) {
	between := "before " + to.UTC().Format(time.RFC3339)
	if !from.IsZero() {
		between = fmt.Sprintf("between %s and %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	text := fmt.Sprintf("console output %s is missing: %s", between, why)
	p.append([]v1.Line{{Time: to, Data: []byte(text), Message: true}})
}
