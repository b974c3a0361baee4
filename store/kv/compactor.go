package kv

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// compactor merges Badger's tables. Badger's own compactors poll twenty times a
// second each, which is most of what an idle berth would use. So open.go starts none:
// this one runs at the start and after some bytes were written. Each log and each
// start adds one table. At 15 of them Badger would make a commit wait for a
// merge, forever if that cannot succeed: writes are refused before.
type compactor struct {
	db      *versioned
	disk    *disk
	log     *slog.Logger
	written int64                 // bytes since the last wake-up; the writer's own
	wake    chan struct{}         // asks run for a merge
	fault   atomic.Pointer[error] // too many tables, and why they are not merged
	stop    chan struct{}
	running sync.WaitGroup
}

const (
	compactAt  = 3                // new tables
	refuseAt   = 10               // new tables; two logs may become tables yet
	wakeAfter  = memTableSize / 8 // bytes written
	retryAfter = time.Second      // refused writes wake nobody
)

// newCompactor starts to merge.
func newCompactor(db *versioned, d *disk, log *slog.Logger) *compactor {
	c := &compactor{db: db, disk: d, log: log, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	c.running.Go(c.run)
	return c
}

func (c *compactor) run() {
	failed := false
	for {
		err := c.compact()
		if err != nil && !failed {
			c.log.Warn("tables of the store are not merged; berth retries every second", "err", err)
		}
		c.record(err)
		failed = err != nil
		var retry <-chan time.Time
		if failed {
			retry = time.After(retryAfter)
		}
		select {
		case <-c.wake:
		case <-retry:
		case <-c.stop:
			return
		}
	}
}

// record records the result of a merge.
func (c *compactor) record(err error) {
	if err == nil || c.db.Levels()[0].NumTables < refuseAt {
		c.fault.Store(nil)
		return
	}
	err = fmt.Errorf("tables cannot be merged: %w", err)
	c.fault.Store(&err)
}

// check returns why no ordinary write is allowed now, or nil.
func (c *compactor) check() error {
	if c == nil {
		return nil
	}
	if err := c.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// compact merges all tables if there are enough new ones, and enough free space:
// they are copied before the old ones are removed.
func (c *compactor) compact() error {
	levels := c.db.Levels()
	if levels[0].NumTables < compactAt {
		return nil
	}
	var size int64
	for _, l := range levels {
		size += l.Size
	}
	if err := c.disk.requireFree(uint64(size) + reserveSize); err != nil {
		return err
	}
	return c.db.flatten()
}

// wrote counts the bytes written, and wakes run from time to time. Only the
// writer calls it. A nil compactor, of a database in memory, does nothing.
func (c *compactor) wrote(bytes int64) {
	if c == nil {
		return
	}
	if c.written += bytes; c.written < wakeAfter {
		return
	}
	c.written = 0
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// close waits for the merge in flight.
func (c *compactor) close() {
	if c != nil {
		close(c.stop)
		c.running.Wait()
	}
}
