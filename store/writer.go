package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// maxBatch is the maximum number of updates that share one commit.
const maxBatch = 256

var errGoexit = errors.New("update ended its goroutine instead of returning")

// op is one call of Update.
type op struct {
	fn         func(*Tx) error
	actor      v1.Actor
	onFullDisk bool // it is allowed while the disk is full
	err        error
	done       chan error
}

// Update runs fn and commits all of its changes, or none if fn returns an error or
// panics. They, and what fn has read, are on the disk when Update returns. Fn runs at most
// once, on another goroutine, and must not block: every other update waits for it.
// It must not call Update.
//
// The error is fn's own, ErrTooBig, ErrClosed, or one that wraps ErrFailed.
func (s *Store) Update(fn func(*Tx) error) error { return s.submit(newOp(fn)) }

// MustUpdate is Update for the few small changes that have to succeed while the
// disk is full: stopping a container, and recording the result. It uses the log that
// Badger has already allocated: some thousand small updates.
func (s *Store) MustUpdate(fn func(*Tx) error) error {
	o := newOp(fn)
	o.onFullDisk = true
	return s.submit(o)
}

func newOp(fn func(*Tx) error) *op {
	return &op{fn: fn, actor: v1.Controller(), done: make(chan error, 1)}
}

// submit has the writer run an update, and waits until it is on the disk.
func (s *Store) submit(o *op) error {
	select {
	case <-s.closing: // also if the writer would take it
		return ErrClosed
	default:
	}
	select {
	case s.ops <- o:
		return <-o.done
	case <-s.closing:
		return ErrClosed
	}
}

// write runs the updates, until the store is closed.
func (s *Store) write() {
	ended := false
	defer func() {
		if !ended { // an update has ended the goroutine
			s.batch.commit()
			s.writer.Go(s.write)
		}
	}()
	for {
		select {
		case o := <-s.ops:
			s.batch.add(o)
		case <-s.closing:
			ended = true
			return
		}
		s.batch.gather()
		s.batch.commit()
	}
}

// batch is the updates that share one commit, in their order.
type batch struct {
	s       *Store
	kv      *kv.Batch // nil before the first update
	state   state     // with the changes of the updates
	ops     []*op     // run, and not yet answered
	changes []Change
}

// gather adds the updates that wait now.
func (b *batch) gather() {
	for len(b.ops) < maxBatch {
		select {
		case o := <-b.s.ops:
			b.add(o)
		default:
			return
		}
	}
}

// add runs an update and takes its changes into the batch.
func (b *batch) add(o *op) {
	if err := b.s.db.Err(); err != nil {
		o.done <- err
		return
	}
	if b.kv == nil {
		b.kv, b.state = b.s.db.Begin(), *b.s.state.Load()
	}
	b.ops = append(b.ops, o)
	tx := &Tx{state: b.state, store: b.s, now: b.s.time(), actor: o.actor, update: true}
	o.err = errGoexit
	o.err = o.run(tx)
	if o.err != nil || len(tx.writes) == 0 {
		return
	}
	err := b.write(o, tx)
	if errors.Is(err, kv.ErrBatchFull) {
		err = b.split(o, tx)
	}
	if err != nil {
		o.err = err
		return
	}
	b.take(o, tx)
}

// write adds the writes of an update.
func (b *batch) write(o *op, tx *Tx) error {
	if o.onFullDisk {
		return b.kv.AddOnFullDisk(tx.writes)
	}
	return b.kv.Add(tx.writes)
}

// run calls the update's function.
func (o *op) run(tx *Tx) (err error) {
	defer func() {
		tx.update = false // whoever keeps tx changes nothing
		if p := recover(); p != nil {
			err = fmt.Errorf("update panicked: %v", p)
			tx.store.log.Error("update panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	if err := o.fn(tx); err != nil {
		return err
	}
	return tx.err
}

// split commits the updates before o and begins a batch with o. It fails if they
// were not stored: o may have read their changes.
func (b *batch) split(o *op, tx *Tx) error {
	b.ops = b.ops[:len(b.ops)-1]
	err := b.commit()
	b.ops = append(b.ops, o)
	if err != nil {
		return err
	}
	b.kv, b.state = b.s.db.Begin(), *b.s.state.Load()
	return b.write(o, tx)
}

// take records what o has changed.
func (b *batch) take(o *op, tx *Tx) {
	b.state.rows = tx.rows
	if len(tx.changes) == 0 {
		return
	}
	b.state.revision++
	for _, c := range tx.changes {
		c.Revision = b.state.revision
		b.changes = append(b.changes, c)
	}
}

// commit stores the batch, publishes it, and then answers the updates. If it cannot be stored, all
// of them fail: any may have read what is not on the disk.
func (b *batch) commit() error {
	err := b.store()
	if err == nil {
		b.publish()
	}
	for _, o := range b.ops {
		if err != nil {
			o.err = err
		}
		o.done <- o.err
	}
	if b.kv != nil {
		b.kv.Discard()
	}
	*b = batch{s: b.s}
	return err
}

func (b *batch) store() error {
	if b.kv == nil || b.kv.Empty() {
		return nil
	}
	if len(b.changes) > 0 {
		b.kv.Set(string(revisionKey), strconv.AppendUint(nil, b.state.revision, 10))
	}
	return b.kv.Commit()
}

// publish lets views and watchers see what is now stored.
func (b *batch) publish() {
	if b.kv == nil || b.kv.Empty() {
		return
	}
	published := b.state
	b.s.state.Store(&published)
	if len(b.changes) > 0 {
		b.s.db.Checkpoint(published.revision)
	}
	b.s.changes.publish(b.changes)
}
