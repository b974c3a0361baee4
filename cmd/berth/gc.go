package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Limits on the garbage of the heap before it is collected.
const (
	gcPercent = 50                     // of what the collector has to keep
	gcGarbage = 16 << 20               // bytes, if that is more, while the daemon is busy;
	gcMost    = 100                    // but at most this percentage, which also holds for the next collection of a heap that grows
	gcBusy    = 250 * time.Millisecond // between two collections: the daemon becomes busy
	gcIdle    = time.Second            // since the last collection: it is busy no more
)

// gcPacer decides how far the heap grows between two garbage collections.
type gcPacer struct {
	set     func(percent int) // sets GOGC
	stopped atomic.Bool

	mu      sync.Mutex
	percent int
	last    time.Time   // of the last collection
	idle    *time.Timer // restores gcPercent
}

// paceGC lets the heap grow by gcPercent between two garbage collections, until stop is called: Go's
// default of 100 saves a little work and needs a third more of the memory that the tenants could
// use. A small heap would then be collected twenty times a second while a client transfers a tree
// of files, so a busy daemon may have gcGarbage.
func paceGC() (stop func()) {
	p := newGCPacer(func(percent int) { debug.SetGCPercent(percent) })
	p.await()
	return p.stop
}

func newGCPacer(set func(percent int)) *gcPacer {
	p := &gcPacer{set: set}
	p.idle = time.AfterFunc(gcIdle, func() { p.grow(gcPercent) })
	p.grow(gcPercent)
	return p
}

func (p *gcPacer) stop() {
	p.stopped.Store(true)
	p.idle.Stop()
}

// await has collected called after the next collection, and after those that follow. A collection
// that has begun already may be missed.
func (p *gcPacer) await() {
	const size = 32 // bytes; the runtime may keep an object of less than 16 with others
	runtime.AddCleanup(new([size]byte), func(p *gcPacer) {
		if p.stopped.Load() {
			return
		}
		p.collected(time.Now(), gcKept())
		p.await()
	}, p)
}

// gcKept returns the bytes that the last collection has kept, which GOGC is a percentage of; see
// https://go.dev/doc/gc-guide.
func gcKept() (bytes uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		bytes += s.Value.Uint64()
	}
	return bytes
}

// collected adapts the growth after a collection that has kept a number of bytes.
func (p *gcPacer) collected(now time.Time, kept uint64) {
	p.mu.Lock()
	limit := gcBusy
	if p.percent > gcPercent {
		limit = gcIdle
	}
	busy := now.Sub(p.last) < limit
	p.last = now
	p.mu.Unlock()
	if !busy {
		p.grow(gcPercent)
		return
	}
	p.grow(min(max(gcPercent, int(100*gcGarbage/max(kept, 1))), gcMost))
	p.idle.Reset(gcIdle)
}

// grow sets GOGC if it changes.
func (p *gcPacer) grow(percent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.percent != percent {
		p.percent = percent
		p.set(percent)
	}
}
