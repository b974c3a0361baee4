package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	v1 "berth/api/v1"
)

// maxBatch is the maximum number of updates that share one commit.
const maxBatch = 256

var errGoexit = errors.New("update ended its goroutine instead of returning")

// op is one call of Update on its way through the writer.
type op struct {
	fn             func(*Tx) error
	actor          v1.Actor
	onFullDisk     bool // it is allowed while the disk is full
	tx             *Tx
	err            error
	dependsOnBatch bool // it may have read uncommitted writes of its batch
	flushLater     bool // it is answered before it is on the disk
	done           chan error
}

// flushDelay bounds how long a power cut may lose an update with flushLater, and is long
// enough that a flush serves many: each is a commit of the file system's journal too, for
// which whoever creates files waits.
const flushDelay = 100 * time.Millisecond

// Update runs fn and commits all of its changes, or none if fn returns an error or
// panics. They, and what fn has read, are on the disk when Update returns. Fn runs at most once, on the
// writer's goroutine, and must not block: every other update waits for it. It must not
// call Update.
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

func (o *op) submit(s *Store) error {
	select {
	case s.ops <- o:
		return <-o.done
	case <-s.closing:
		return ErrClosed
	}
}

// Flush returns when all that a view can read is on the disk.
func (s *Store) Flush() error {
	if !s.db.Unflushed() {
		return nil
	}
	return s.Update(func(*Tx) error { return nil })
}

// write is the only goroutine that writes. It ends when the store is closed.
func (s *Store) write() {
	b := &batch{s: s, rev: s.rev.Load()}
	ended := false
	defer func() {
		if ended {
			close(s.written)
			return
		}
		b.abandon(fmt.Errorf("%w: %w", ErrFailed, errGoexit))
		go s.write()
	}()
	var retry, flush <-chan time.Time
	for {
		if retry == nil && s.db.NeedsRepair() {
			retry = time.After(repairEvery)
		}
		if flush == nil && s.db.Unflushed() {
			flush = time.After(flushDelay)
		}
		select {
		case <-flush:
			flush = nil
			_ = s.db.Flush() // the next update gets the error
		case <-retry:
			retry = nil
			repair(s)
			b.reset()
		case o := <-s.ops:
			b.add(o)
			b.gather()
			b.commit()
			s.db.Rotate()
		case <-s.closing:
			ended = true
			return
		}
	}
}

// gather adds the updates that are waiting. It does not wait for more.
func (b *batch) gather() {
	for range maxBatch - 1 {
		select {
		case o := <-b.s.ops:
			b.add(o)
		default:
			return
		}
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
