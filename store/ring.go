package store

import (
	"sort"
	"sync"
)

// ring keeps the newest items. The position of an item is the number of items before
// it. Readers copy items and then wait for a channel to be closed when there are more:
// they hold no lock while they wait.
type ring[T any] struct {
	mu    sync.RWMutex
	items []T
	first uint64 // position of the oldest item kept
	next  uint64 // position of the next item
	lost  T      // the item before the oldest one kept
	more  chan struct{}
}

func newRing[T any](size int, next uint64, lost T) *ring[T] {
	return &ring[T]{items: make([]T, size), first: next, next: next, lost: lost, more: make(chan struct{})}
}

func (r *ring[T]) append(items ...T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := uint64(len(r.items))
	for _, item := range items {
		if r.next-r.first == size {
			r.lost = r.items[r.first%size]
			r.first++
		}
		r.items[r.next%size] = item
		r.next++
	}
	close(r.more)
	r.more = make(chan struct{})
}

// from returns up to limit items from pos on, and a channel that is closed when an
// item is appended. It returns false if pos is no longer kept, or is in the future.
func (r *ring[T]) from(pos uint64, limit int) (items []T, more <-chan struct{}, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if pos < r.first || pos > r.next {
		return nil, nil, false
	}
	end := min(r.next, pos+uint64(limit))
	size := uint64(len(r.items))
	items = make([]T, 0, end-pos)
	for ; pos < end; pos++ {
		items = append(items, r.items[pos%size])
	}
	return items, r.more, true
}

// newest returns the newest item, or the lost one if no item is kept, and a channel that
// is closed when an item is appended.
func (r *ring[T]) newest() (item T, more <-chan struct{}) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.next == r.first {
		return r.lost, r.more
	}
	return r.items[(r.next-1)%uint64(len(r.items))], r.more
}

// search returns the position after the newest item for which seen returns true,
// and the item before the oldest one kept.
func (r *ring[T]) search(seen func(T) bool) (pos uint64, lost T) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	size := uint64(len(r.items))
	n := sort.Search(int(r.next-r.first), func(i int) bool {
		return !seen(r.items[(r.first+uint64(i))%size])
	})
	return r.first + uint64(n), r.lost
}
