package store

import "sync"

// maxCached bounds the cache, in halves. It is far more than a host has.
const maxCached = 50_000

// cache keeps decoded halves by their keys and by Badger's versions of them, so
// that a view need not decode what it has decoded before. Whoever puts a half in
// or takes one out clones it.
type cache struct {
	mu      sync.RWMutex
	records map[string]cached
}

type cached struct {
	version uint64
	record  any
}

// get returns nil unless it has just this version.
func (c *cache) get(key string, version uint64) any {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if h := c.records[key]; h.version == version {
		return h.record
	}
	return nil
}

func (c *cache) put(key string, version uint64, half any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil || len(c.records) >= maxCached {
		c.records = map[string]cached{}
	}
	if version > c.records[key].version {
		c.records[key] = cached{version, half}
	}
}

// clear drops everything: versions are counted anew.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = nil
}

func (c *cache) drop(keys []string) {
	if len(keys) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		delete(c.records, key)
	}
}
