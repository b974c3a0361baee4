package kv

import (
	"sync"

	"github.com/dgraph-io/badger/v4"
)

// versioned is an open Badger whose versions this package chooses: there is one writer, so
// a commit has the version after the last one. Badger would find them by two goroutines
// that each view and each commit wakes several times.
type versioned struct {
	*badger.DB

	mu        sync.Mutex
	committed uint64         // version of the last commit
	views     map[uint64]int // number of open transactions by the version that they read
}

func newVersioned(b *badger.DB) *versioned {
	return &versioned{DB: b, committed: b.MaxVersion(), views: map[uint64]int{}}
}

// begin returns the version that a new transaction reads.
func (v *versioned) begin() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.views[v.committed]++
	return v.committed
}

// end ends a transaction that read a version.
func (v *versioned) end(version uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.views[version]--; v.views[version] == 0 {
		delete(v.views, version)
	}
}

// commit writes a transaction into Badger's log and memory. Views that begin later read it.
// Only the writer calls it.
func (v *versioned) commit(txn *badger.Txn) error {
	v.mu.Lock()
	next := v.committed + 1
	v.mu.Unlock()
	if err := txn.CommitAt(next, nil); err != nil {
		return err
	}
	v.mu.Lock()
	v.committed = next
	v.mu.Unlock()
	return nil
}

// flatten merges all tables, and drops what no transaction can read any more.
func (v *versioned) flatten() error {
	v.SetDiscardTs(v.oldest())
	return v.Flatten(1)
}

// oldest returns the oldest version that a transaction reads, or may read from now on.
func (v *versioned) oldest() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	oldest := v.committed
	for version := range v.views {
		oldest = min(oldest, version)
	}
	return oldest
}
