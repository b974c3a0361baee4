package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Limits on the garbage of the heap before it is collected.
const (
	gcPercent = 50                     // of the live heap
	gcGarbage = 16 << 20               // bytes, if that is more, while the daemon is busy
	gcBusy    = 250 * time.Millisecond // between two collections, at most, of a busy daemon
	gcIdle    = time.Second            // since the last collection of a daemon that was busy
)

// gcPacer decides how far the heap grows between two garbage collections.
type gcPacer struct {
	set func(percent int) // sets GOGC

	mu      sync.Mutex
	percent int
	last    time.Time   // of the last collection
	idle    *time.Timer // ends the time of gcGarbage
}

// paceGC has the heap grow by gcPercent between two garbage collections: Go's default of 100 saves a
// little work and needs a third more of the memory that the tenants could use. A small heap
// would then be collected twenty times a second while a client transfers a tree of files, so a
// busy daemon may have gcGarbage.
func paceGC() {
	p := newGCPacer(func(percent int) { debug.SetGCPercent(percent) })
	p.await()
}

func newGCPacer(set func(percent int)) *gcPacer {
	p := &gcPacer{set: set}
	p.idle = time.AfterFunc(gcIdle, func() { p.grow(gcPercent) })
	p.grow(gcPercent)
	return p
}

// await has collected called after each collection: it frees what nothing refers to.
func (p *gcPacer) await() {
	const size = 32 // bytes; the runtime may keep an object of less than 16 with others
	runtime.AddCleanup(new([size]byte), func(p *gcPacer) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		p.collected(time.Now(), live[0].Value.Uint64())
		p.await()
	}, p)
}

// collected adapts the growth after a collection, which has left live bytes.
func (p *gcPacer) collected(now time.Time, live uint64) {
	busy := now.Sub(p.last) < gcBusy
	p.last = now
	if !busy {
		p.grow(gcPercent)
		return
	}
	p.grow(max(gcPercent, int(min(100*gcGarbage/max(live, 1), math.MaxInt32))))
	p.idle.Reset(gcIdle)
}

// grow sets the growth in percent of the live heap, which stops the daemon for some microseconds.
func (p *gcPacer) grow(percent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.percent != percent {
		p.percent = percent
		p.set(percent)
	}
}
