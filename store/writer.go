package store

import (
	"errors"
	"fmt"
	"runtime/debug"

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
	done           chan error
}

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

// write commits o and the updates that wait, and answers them. The caller has the turn.
func (o *op) write(s *Store) {
	b := s.batch
	defer b.abandon(errGoexit)
	b.add(o)
	b.gather()
	b.commit()
}

// gather adds the updates that are waiting to the one that waits for the disk. It does not
// wait for more.
func (b *batch) gather() {
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
