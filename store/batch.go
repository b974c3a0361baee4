package store

import (
	"encoding/binary"
	"errors"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// batch is the updates that share one commit, in their order.
type batch struct {
	s       *Store
	kv      *kv.Batch // nil between commits
	ops     []*op     // run, and not yet answered
	rev     uint64    // of the last update that changed an object
	removed []string  // keys
	changes []Change
	events  []v1.Event
}

func (b *batch) begin() { b.kv, b.rev = b.s.db.Begin(), b.s.rev.Load() }

// add runs an update and takes its writes into the batch.
func (b *batch) add(o *op) {
	if err := b.s.db.Err(); err != nil {
		o.done <- err
		return
	}
	if b.kv == nil {
		b.begin()
	}
	o.dependsOnBatch = !b.kv.Empty()
	o.tx = &Tx{store: b.s, txn: b.kv.Txn, now: b.s.time(), actor: o.actor, update: true, rev: b.rev + 1}
	b.ops = append(b.ops, o)
	o.run()
	if o.err != nil || len(o.tx.writes) == 0 {
		return
	}
	err := b.kv.Add(o.tx.writes, o.onFullDisk)
	if errors.Is(err, kv.ErrBatchFull) {
		err = b.split(o)
	}
	if err != nil {
		o.err = err
		return
	}
	b.take(o)
}

// split commits the updates before o and begins a batch with o. It fails if they
// were not stored: o may have read their writes.
func (b *batch) split(o *op) error {
	b.ops = b.ops[:len(b.ops)-1]
	err := b.commit()
	b.ops = append(b.ops, o)
	if err != nil {
		return err
	}
	b.begin()
	return b.kv.Add(o.tx.writes, o.onFullDisk)
}

// take records what o has changed; the batch has its writes.
func (b *batch) take(o *op) {
	for key, value := range o.tx.writes {
		if value == nil {
			b.removed = append(b.removed, key)
		}
	}
	b.events = append(b.events, o.tx.events...)
	o.dependsOnBatch = true
	if len(o.tx.changes) > 0 {
		b.rev = o.tx.rev
		for _, c := range o.tx.changes {
			c.Revision = b.rev
			b.changes = append(b.changes, c)
		}
	}
}

// commit stores the batch, notifies the watchers, and then answers.
func (b *batch) commit() error {
	err := b.store()
	if err == nil {
		b.publish()
	}
	for _, o := range b.ops {
		if err != nil && o.dependsOnBatch {
			o.err = err
		}
		o.done <- o.err
	}
	b.reset()
	return err
}

// abandon returns err to the update that has ended its goroutine, if one has, and commits those
// before it.
func (b *batch) abandon(err error) {
	if len(b.ops) == 0 {
		return
	}
	last := len(b.ops) - 1
	b.ops[last].done <- err
	b.ops = b.ops[:last]
	b.commit()
}

func (b *batch) reset() {
	if b.kv != nil {
		b.kv.Discard()
	}
	*b = batch{s: b.s}
}

func (b *batch) store() error {
	if b.kv == nil {
		return nil
	}
	if len(b.changes) > 0 {
		b.kv.Set(revisionKey, binary.BigEndian.AppendUint64(nil, b.rev))
	}
	return b.kv.Commit()
}

// publish notifies the watchers of what is now stored.
func (b *batch) publish() {
	s := b.s
	s.cache.drop(b.removed)
	if len(b.changes) > 0 {
		s.latest.record(b.changes)
		s.rev.Store(b.rev)
		s.db.Checkpoint(b.rev)
		s.changes.append(b.changes...)
	}
	if len(b.events) > 0 {
		s.events.append(b.events...)
	}
}
