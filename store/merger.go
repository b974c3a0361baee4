package store

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// compactor merges Badger's tables. Badger's own compactors look for work twenty
// times a second each, which is most of what an idle berth would use. So there
// are none: what was written says when to look. One table is added per
// log written and per start. At 15 of them Badger would have a commit wait for
// the merging, without an end if that cannot go on: updates are refused before.
type compactor struct {
	db    *badger.DB
	disk  *disk
	log   *slog.Logger
	since int64                 // bytes written since it was last told to look; the writer's own
	grown chan struct{}         // it is to look
	fault atomic.Pointer[error] // there are too many tables, and why they are not merged
	end   chan struct{}
	ended sync.WaitGroup
}

const (
	compactAt  = 3                // new tables
	refuseAt   = 10               // new tables; two logs may become tables yet
	lookEvery  = memTableSize / 8 // bytes written
	retryAfter = time.Second      // nothing may be written any more that has it look
)

// newCompactor begins to merge.
func newCompactor(db *badger.DB, d *disk, log *slog.Logger) *compactor {
	m := &compactor{db: db, disk: d, log: log, grown: make(chan struct{}, 1), end: make(chan struct{})}
	m.ended.Go(m.run)
	return m
}

func (m *compactor) run() {
	failed := false
	for {
		err := m.compact()
		if err != nil && !failed {
			m.log.Warn("tables of the store are not merged; it is tried again and again", "err", err)
		}
		m.judge(err)
		failed = err != nil
		var again <-chan time.Time
		if failed {
			again = time.After(retryAfter)
		}
		select {
		case <-m.grown:
		case <-again:
		case <-m.end:
			return
		}
	}
}

// judge notes what a merge came to.
func (m *compactor) judge(err error) {
	if err == nil || m.db.Levels()[0].NumTables < refuseAt {
		m.fault.Store(nil)
		return
	}
	err = fmt.Errorf("tables cannot be merged: %w", err)
	m.fault.Store(&err)
}

// check says why nothing may be written now.
func (m *compactor) check() error {
	if m == nil {
		return nil
	}
	if err := m.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// compact merges all tables if there are enough new ones, and room: they are
// written anew before the old ones go.
func (m *compactor) compact() error {
	levels := m.db.Levels()
	if levels[0].NumTables < compactAt {
		return nil
	}
	var size int64
	for _, l := range levels {
		size += l.Size
	}
	if err := m.disk.freeSpace(uint64(size) + reserveSize); err != nil {
		return err
	}
	return m.db.Flatten(1)
}

// wrote counts what was written, and has the merger look from time to time. It
// is the writer's. In memory nothing is merged.
func (m *compactor) wrote(size int64) {
	if m == nil {
		return
	}
	if m.since += size; m.since < lookEvery {
		return
	}
	m.since = 0
	select {
	case m.grown <- struct{}{}:
	default:
	}
}

// close waits for the merge under way.
func (m *compactor) close() {
	if m != nil {
		close(m.end)
		m.ended.Wait()
	}
}
