package store

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"

	v1 "berth/api/v1"
)

// batch is the updates that share one transaction of Badger, in their order.
type batch struct {
	s       *Store
	txn     *badger.Txn // nil between commits
	ops     []*op       // run, and not yet answered
	rev     uint64      // of the last update that changed an object
	count   int64       // keys in txn
	size    int64       // bytes in txn, as Badger estimates them
	removed []string
	changes []Change
	events  []v1.Event
	err     error // the batch cannot be committed
}

const (
	entrySize = 12 // what Badger adds to a key and its value in its estimate
	maxValue  = 1<<20 - 1
)

// add runs an update and takes its writes into the batch.
func (b *batch) add(o *op) {
	if err := b.s.fault.Load(); err != nil {
		o.done <- *err
		return
	}
	if b.txn == nil {
		b.txn = b.s.db.NewTransaction(true)
	}
	o.dependsOnBatch = b.count > 0
	o.tx = &Tx{store: b.s, txn: b.txn, now: b.s.time(), update: true, rev: b.rev + 1}
	b.ops = append(b.ops, o)
	o.run()
	if o.err != nil || len(o.tx.writes) == 0 {
		return
	}
	count, size, err := weigh(o.tx.writes)
	if err == nil {
		err = b.hasSpace(o, count, size)
	}
	if err == nil && !b.fits(0, 0, count, size) {
		err = fmt.Errorf("%w: %d keys, %d bytes", ErrTooBig, count, size)
	}
	if err != nil {
		o.err = err
		return
	}
	if !b.fits(b.count, b.size, count, size) && !b.split(o) {
		return
	}
	b.take(o, count, size)
}

// checkFree says why the disk has no room for an update.
func (b *batch) hasSpace(o *op, count, size int64) error {
	err := checkFree(b.s)
	if err == nil || (o.onFullDisk && b.s.disk.has(b.count+count, b.size+size)) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrFailed, err)
}

// fits says whether a transaction of Badger holds so much, and the revision.
func (b *batch) fits(count, size, moreCount, moreSize int64) bool {
	const spare = 64 // checkFree for the key of the revision
	return count+moreCount+1 < b.s.db.MaxBatchCount() && size+moreSize+spare < b.s.db.MaxBatchSize()
}

// split commits what came before o, to begin a transaction with o. It says
// whether o may go on: it may not if what it has read was not kept.
func (b *batch) split(o *op) bool {
	b.ops = b.ops[:len(b.ops)-1]
	err := b.commit()
	b.ops = append(b.ops, o)
	if err != nil {
		o.err = err
		return false
	}
	b.txn = b.s.db.NewTransaction(true)
	return true
}

// weigh is how much of a Badger transaction the writes take.
func weigh(writes map[string][]byte) (count, size int64, err error) {
	for key, value := range writes {
		if len(value) > maxValue {
			return 0, 0, fmt.Errorf("%w: %q has %d bytes", ErrTooBig, key, len(value))
		}
		count++
		size += int64(len(key) + len(value) + entrySize)
	}
	return count, size, nil
}

func (b *batch) take(o *op, count, size int64) {
	for key, value := range o.tx.writes {
		if value == nil {
			b.removed = append(b.removed, key)
		}
		if err := write(b.txn, key, value); err != nil && b.err == nil {
			b.err = fmt.Errorf("%w: %w", ErrFailed, err)
		}
	}
	b.count += count
	b.size += size
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

// commit makes the batch durable, tells the watchers, and then answers.
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

// abandon drops the batch and gives err to everybody in it.
func (b *batch) abandon(err error) {
	for _, o := range b.ops {
		o.done <- err
	}
	b.reset()
}

func (b *batch) reset() {
	if b.txn != nil {
		b.txn.Discard()
	}
	*b = batch{s: b.s, rev: b.s.rev.Load()}
}

func (b *batch) store() error {
	if b.err != nil || b.count == 0 {
		return b.err
	}
	if err := b.s.disk.prepare(b.count, b.size); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := b.setRevision(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	began := time.Now()
	err := b.s.commit(b.txn)
	b.s.metrics.observe(time.Since(began))
	if err != nil {
		return b.again(b.s.broken(err))
	}
	return nil
}

func (b *batch) setRevision() error {
	if len(b.changes) == 0 {
		return nil
	}
	return b.txn.Set([]byte(revisionKey), binary.BigEndian.AppendUint64(nil, b.rev))
}

// write puts one write of an update into a transaction; nil deletes.
func write(txn *badger.Txn, key string, value []byte) error {
	if value == nil {
		return txn.Delete([]byte(key))
	}
	return txn.Set([]byte(key), value)
}

func commit(txn *badger.Txn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("badger panicked: %v", p)
		}
	}()
	return txn.Commit()
}

// publish tells the watchers what is now on the disk.
func (b *batch) publish() {
	s := b.s
	s.compactor.wrote(b.size)
	s.cache.drop(b.removed)
	if len(b.changes) > 0 {
		s.rev.Store(b.rev)
		s.mark.set(b.rev)
		s.changes.append(b.changes...)
	}
	if len(b.events) > 0 {
		s.events.append(b.events...)
	}
}
