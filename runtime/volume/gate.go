package volume

import (
	"context"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"

	v1 "berth/api/v1"
)

// gate keeps the operations on a volume's files apart from a restore of it: changes are
// refused while a restore is in flight, and a restore begins when the changes before it
// have ended. Reads never wait. A restore removes the old tree when the reads that may
// be in it have ended.
type gate struct {
	reserved  func() error        // returns the refusal of changes while a transfer has reserved the volume
	restoring sync.Mutex          // held by a restore, which waits or is in flight
	changes   *semaphore.Weighted // a change has one permit, a restore all

	mu    sync.Mutex
	reads *semaphore.Weighted // a read has one permit; drain waits for all, and leaves another one
}

const allPermits = math.MaxInt64

func newGate(reserved func() error) *gate {
	return &gate{reserved: reserved, changes: semaphore.NewWeighted(allPermits), reads: semaphore.NewWeighted(allPermits)}
}

// change begins a change of the volume's files. It returns v1.ErrVolumeRestoring during
// a restore, and v1.ErrTransferring during a transfer. The caller calls done at the end.
func (g *gate) change() (done func(), err error) {
	if err := g.reserved(); err != nil {
		return nil, err
	}
	if !g.changes.TryAcquire(1) { // it fails too while a restore waits
		return nil, v1.ErrVolumeRestoring
	}
	return func() { g.changes.Release(1) }, nil
}

// check returns what change refuses with. Changes in flight call it now
// and then, so that a slow one does not keep a restore waiting.
func (g *gate) check() error {
	done, err := g.change()
	if err == nil {
		done()
	}
	return err
}

// read begins a read of the volume's files. The caller calls done at the end.
func (g *gate) read() (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	reads := g.reads
	reads.TryAcquire(1) // it never fails: drain waits for those of before
	return func() { reads.Release(1) }
}

// restore begins a restore when the changes in flight have ended. It returns
// v1.ErrVolumeRestoring during another one. The caller calls done at the end.
func (g *gate) restore(ctx context.Context) (done func(), err error) {
	if !g.restoring.TryLock() {
		return nil, v1.ErrVolumeRestoring
	}
	if err := g.changes.Acquire(ctx, allPermits); err != nil {
		g.restoring.Unlock()
		return nil, err
	}
	return func() { g.changes.Release(allPermits); g.restoring.Unlock() }, nil
}

// drain waits until the reads that began before the call have ended.
func (g *gate) drain(ctx context.Context) error {
	g.mu.Lock()
	before := g.reads
	g.reads = semaphore.NewWeighted(allPermits)
	g.mu.Unlock()
	return before.Acquire(ctx, allPermits)
}
