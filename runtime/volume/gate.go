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
	volumes map[string]*traffic // of volumes that were used; nil: none
}

// traffic is what is in flight on a volume.
type traffic struct {
	restoring      bool
	changes, reads *sync.WaitGroup
}

// of returns the traffic of a volume. g.mu is held.
func (g *gate) of(id string) *traffic {
	t := g.volumes[id]
	if t == nil {
		t = &traffic{changes: new(sync.WaitGroup), reads: new(sync.WaitGroup)}
		if g.volumes == nil {
			g.volumes = map[string]*traffic{}
		}
		g.volumes[id] = t
	}
	return t
}

// forget forgets a volume that was removed.
func (g *gate) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.volumes, id)
}

// check returns v1.ErrVolumeRestoring during a restore. Changes in flight call it now
// and then, so that a slow one does not keep a restore waiting.
func (g *gate) check(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of(id).restoring {
		return v1.ErrVolumeRestoring
	}
	return nil
}

// change begins a change of the volume's files. It returns v1.ErrVolumeRestoring during
// a restore. The caller calls done at the end.
func (g *gate) change(id string) (done func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.of(id)
	if t.restoring {
		return nil, v1.ErrVolumeRestoring
	}
	t.changes.Add(1)
	return t.changes.Done, nil
}

// read begins a read of the volume's files. The caller calls done at the end.
func (g *gate) read(id string) (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.of(id)
	t.reads.Add(1)
	return t.reads.Done
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
	changes := next(&t.changes)
	g.mu.Unlock()
	done = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		t.restoring = false
	}
	if err := wait(ctx, changes); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// drain waits until the reads that began before the call have ended.
func (g *gate) drain(ctx context.Context, id string) error {
	g.mu.Lock()
	reads := next(&g.of(id).reads)
	g.mu.Unlock()
	return wait(ctx, reads)
}

// next returns the group of the operations so far, to which no more are added. It leaves another
// one for those that follow, which ends after it: the caller may give up before.
func next(group **sync.WaitGroup) *sync.WaitGroup {
	before := *group
	*group = new(sync.WaitGroup)
	(*group).Go(before.Wait)
	return before
}

// wait waits until the operations of a group have ended.
func wait(ctx context.Context, group *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() { // it ends with the last operation, also if ctx ends before
		group.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
