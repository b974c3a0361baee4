package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	v1 "berth/api/v1"
)

// maxBatch is the maximum number of updates that share one commit.
const maxBatch = 256

var errGoexit = errors.New("update ended its goroutine instead of returning")

// op is one call of Update.
type op struct {
	fn             func(*Tx) error
	actor          v1.Actor
	onFullDisk     bool // it is allowed while the disk is full
	tx             *Tx
	err            error
	dependsOnBatch bool // it may have read what is not on the disk
	flushLater     bool // it is answered before it is on the disk
	repairs        bool // it opens a store again that failed, and shares no commit
	done           chan error
}

// flushDelay bounds how long a power cut may lose an update with flushLater, and is long
// enough that a flush serves many.
const flushDelay = 100 * time.Millisecond

// Update runs fn and commits all of its changes, or none if fn returns an error or
// panics. They, and what fn has read, are on the disk when Update returns. Fn runs at most
// once, on the goroutine of any update, and must not block: every other update waits for it.
// It must not call Update.
//
// The error is fn's own, ErrTooBig, ErrClosed, or one that wraps ErrFailed.
func (s *Store) Update(fn func(*Tx) error) error {
	return newOp(fn).submit(s)
}

// MustUpdate is Update for the few small changes that have to succeed while the
// disk is full: stopping a container, and recording the result. It uses the log that
// Badger has already allocated: some thousand small updates.
func (s *Store) MustUpdate(fn func(*Tx) error) error {
	o := newOp(fn)
	o.onFullDisk = true
	return o.submit(s)
}

func newOp(fn func(*Tx) error) *op {
	return &op{fn: fn, actor: v1.Controller(), done: make(chan error, 1)}
}

// submit writes, or waits until somebody else has.
func (o *op) submit(s *Store) error {
	mine, err := s.turns.take(o)
	if err != nil {
		return err
	}
	if mine {
		defer s.turns.pass()
		o.write(s)
	}
	return <-o.done
}

// work writes the updates that wait. It ends when the store is closed.
func work(s *Store) {
	ended := false
	defer func() {
		if !ended { // an update has ended the goroutine
			s.turns.pass()
			go work(s)
		}
	}()
	for range s.turns.more {
		for o := s.turns.first(); o != nil; o = s.turns.first() {
			o.write(s)
		}
	}
	ended = true
}

// Flush returns when all updates that were answered are on the disk, and views see them.
func (s *Store) Flush() error {
	if !s.db.Logged() {
		return nil
	}
	return s.Update(func(*Tx) error { return nil })
}

// write commits o and the updates that wait, and answers them. The caller has the turn. An
// update with flushLater is logged instead, if it can be, and the next commit has it.
func (o *op) write(s *Store) {
	b := s.batch
	defer b.abandon(errGoexit)
	if o.repairs && s.db.NeedsRepair() {
		repair(s)
	}
	b.add(o)
	if !o.flushLater || !b.log() {
		b.gather(o)
		b.commit()
		s.db.Rotate()
	}
	plan(s)
}

// plan has the store repaired or flushed in time.
func plan(s *Store) {
	switch {
	case s.db.NeedsRepair():
		later(&s.repairPlanned, repairEvery, func() {
			o := newOp(func(*Tx) error { return nil })
			o.repairs = true
			_ = o.submit(s)
		})
	case s.db.Logged():
		later(&s.flushPlanned, flushDelay, func() { flushLogged(s) })
	}
}

// flushLogged flushes the log beside the updates, again and again while it grows, and then commits
// what it has.
func flushLogged(s *Store) {
	if s.db.SyncLog() {
		plan(s)
	} else {
		_ = s.Flush() // the next update gets the error
	}
}

// later calls fn after d, unless that is planned already.
func later(planned *atomic.Bool, d time.Duration, fn func()) {
	if !planned.Swap(true) {
		time.AfterFunc(d, func() {
			planned.Store(false)
			fn()
		})
	}
}

// gather adds the updates that are waiting to the one that waits for the disk. It does not
// wait for more.
func (b *batch) gather(first *op) {
	if first.flushLater {
		return
	}
	for range maxBatch - 1 {
		o := b.s.turns.next()
		if o == nil {
			return
		}
		b.add(o)
	}
}

// run calls the update's function and stores its error in o.err.
func (o *op) run() {
	defer o.tx.end()
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("update panicked: %v", p)
			o.tx.store.log.Error("update panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	o.err = o.fn(o.tx)
	if o.err == nil {
		o.err = o.tx.err
	}
}
