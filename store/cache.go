package store

import "sync"

// maxCached bounds the cache, in halves. It is far more than a host has.
const maxCached = 50_000

// cache keeps decoded halves by their keys and by Badger's versions of them, so
// that a view need not decode what it has decoded before. Whoever puts a half in
// or takes one out clones it.
type cache struct {
	mu     sync.RWMutex
	halves map[string]cached
}

type cached struct {
	version uint64
	half    any
}

// get returns nil unless it has just this version.
func (c *cache) get(key string, version uint64) any {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if h := c.halves[key]; h.version == version {
		return h.half
	}
	return nil
}

func (c *cache) put(key string, version uint64, half any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halves == nil || len(c.halves) >= maxCached {
		c.halves = map[string]cached{}
	}
	if version > c.halves[key].version {
		c.halves[key] = cached{version, half}
	}
}

// clear drops everything: versions are counted anew.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halves = nil
}

func (c *cache) drop(keys []string) {
	if len(keys) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		delete(c.halves, key)
	}
}
