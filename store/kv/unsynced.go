package kv

import "fmt"

// unsynced are the batches that are in the log and not yet on the disk. If the disk does not
// take them, they are stored again, so all of them fit into one transaction.
type unsynced struct {
	writes []map[string][]byte
	size   size
}

// Write stores the batch where a kill of the process does not reach it, and leaves it to the
// next Commit, of an empty batch too, to make it durable. It returns true if it has done so
// itself: the log is then so full that Badger may begin another one, and Badger syncs only the
// one it writes.
func (b *Batch) Write(written func()) (durable bool, err error) {
	all := b.db.unsynced.size.plus(b.size)
	if b.err != nil || b.Empty() || !b.fits(all) || !b.db.disk.keepsLog(b.size) {
		return true, b.Commit(written)
	}
	if err := b.db.disk.prepare(b.size); err != nil {
		return false, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := b.db.commit(b.txn, written, false); err != nil {
		err = b.commitAgain(b.db.broken(err), written)
		b.db.unsynced = unsynced{}
		return true, err
	}
	b.db.unsynced = unsynced{append(b.db.unsynced.writes, b.writes...), all}
	b.db.compactor.wrote(b.size.bytes)
	return false, nil
}

// Unsynced reports whether a Commit is necessary. Only the writer calls it.
func (db *DB) Unsynced() bool { return len(db.unsynced.writes) > 0 }
