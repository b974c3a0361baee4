package volume

import (
	"context"
	"sync"

	v1 "berth/api/v1"
)

// gate keeps the operations on a volume's files apart from a restore of it: changes are
// refused while a restore is in flight, and a restore begins when the changes before it
// have ended. Reads never wait. A restore removes the old tree when the reads that may
// be in it have ended.
type gate struct {
	mu      sync.Mutex
	volumes map[string]*traffic // of volumes that have any
	next    uint64              // number of the next read
}

// traffic is what is in flight on a volume.
type traffic struct {
	restoring bool
	changes   int
	reads     map[uint64]bool // by number, in the order of their begin
	ended     chan struct{}   // closed and replaced at each end; nil if nobody waits
}

func newGate() *gate { return &gate{volumes: map[string]*traffic{}} }

// of returns the traffic of a volume. g.mu is held.
func (g *gate) of(id string) *traffic {
	t := g.volumes[id]
	if t == nil {
		t = &traffic{reads: map[uint64]bool{}}
		g.volumes[id] = t
	}
	return t
}

// check returns v1.ErrVolumeRestoring during a restore. Changes in flight call it now
// and then, so that a slow one does not keep a restore waiting.
func (g *gate) check(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.volumes[id]; t != nil && t.restoring {
		return v1.ErrVolumeRestoring
	}
	return nil
}

// change begins a change of the volume's files. It returns v1.ErrVolumeRestoring during
// a restore. The caller calls done at the end.
func (g *gate) change(id string) (done func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.volumes[id]; t != nil && t.restoring {
		return nil, v1.ErrVolumeRestoring
	}
	g.of(id).changes++
	return func() { g.end(id, func(t *traffic) { t.changes-- }) }, nil
}

// read begins a read of the volume's files. The caller calls done at the end.
func (g *gate) read(id string) (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.of(id)
	n := g.next
	g.next++
	t.reads[n] = true
	return func() { g.end(id, func(t *traffic) { delete(t.reads, n) }) }
}

// restore begins a restore when the changes in flight have ended. It returns
// v1.ErrVolumeRestoring during another one. The caller calls done at the end.
func (g *gate) restore(ctx context.Context, id string) (done func(), err error) {
	g.mu.Lock()
	t := g.of(id)
	if t.restoring {
		g.mu.Unlock()
		return nil, v1.ErrVolumeRestoring
	}
	t.restoring = true
	g.mu.Unlock()
	done = func() { g.end(id, func(t *traffic) { t.restoring = false }) }
	if err := g.wait(ctx, id, func(t *traffic) bool { return t.changes == 0 }); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// drain waits until the reads that began before the call have ended.
func (g *gate) drain(ctx context.Context, id string) error {
	g.mu.Lock()
	before := g.next
	g.mu.Unlock()
	return g.wait(ctx, id, func(t *traffic) bool {
		for n := range t.reads {
			if n < before {
				return false
			}
		}
		return true
	})
}

// wait waits until until returns true.
func (g *gate) wait(ctx context.Context, id string, until func(*traffic) bool) error {
	for {
		g.mu.Lock()
		t := g.of(id)
		if until(t) {
			g.mu.Unlock()
			return nil
		}
		if t.ended == nil {
			t.ended = make(chan struct{})
		}
		ended := t.ended
		g.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end records an end and wakes those who wait.
func (g *gate) end(id string, record func(*traffic)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.of(id)
	record(t)
	if t.ended != nil {
		close(t.ended)
		t.ended = nil
	}
	if !t.restoring && t.changes == 0 && len(t.reads) == 0 {
		delete(g.volumes, id)
	}
}
