package kv

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// compactor merges Badger's tables. Badger needs at least two compactors of its own, which poll
// twenty times a second each, so open.go starts none. Each log and each start adds one table. At
// 15 of them Badger would make a commit wait for a merge, forever if that cannot succeed: the
// writer merges before, and refuses writes if that fails.
type compactor struct {
	db      *badger.DB
	disk    *disk
	log     *slog.Logger
	mu      sync.Mutex // held by a merge
	stop    chan struct{}
	running sync.WaitGroup
}

const (
	compactEvery = 10 * time.Second
	compactAt    = 3  // new tables
	refuseAt     = 10 // new tables; two logs may become tables yet
)

// newCompactor starts to merge.
func newCompactor(db *badger.DB, d *disk, log *slog.Logger) *compactor {
	c := &compactor{db: db, disk: d, log: log, stop: make(chan struct{})}
	c.running.Go(c.run)
	return c
}

func (c *compactor) run() {
	tick := time.NewTicker(compactEvery)
	defer tick.Stop()
	for failed := false; ; {
		err := c.merge(compactAt)
		if err != nil && !failed {
			c.log.Warn("tables of the store are not merged; berth retries", "err", err)
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
	}
}

// check returns why no ordinary write is allowed now, or nil.
func (c *compactor) check() error {
	if c == nil {
		return nil
	}
	if err := c.merge(refuseAt); err != nil {
		return fmt.Errorf("tables cannot be merged: %w", err)
	}
	return nil
}

// merge merges all tables if there are so many new ones, and enough free space: they are copied
// before the old ones are removed. It waits for a merge in flight only if it is needed.
func (c *compactor) merge(at int) error {
	if c.newTables() < at {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newTables() < at {
		return nil
	}
	var size int64
	for _, l := range c.db.Levels() {
		size += l.Size
	}
	if err := c.disk.requireFree(uint64(size) + reserveSize); err != nil {
		return err
	}
	return c.db.Flatten(1)
}

func (c *compactor) newTables() int { return c.db.Levels()[0].NumTables }

// close waits for the merge in flight.
func (c *compactor) close() {
	if c != nil {
		close(c.stop)
		c.running.Wait()
	}
}
