package store

import "sync"

// maxCached is the maximum number of records in the cache: far more than a host has.
const maxCached = 50_000

// cache keeps decoded records by their keys and versions, so that a record is
// decoded once. The caller of put and get clones the record.
type cache struct {
	mu      sync.RWMutex
	records map[string]cached
}

type cached struct {
	version uint64
	record  any
}

// get returns the record of a key, or nil if the cache has not this version.
func (c *cache) get(key string, version uint64) any {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if h := c.records[key]; h.version == version {
		return h.record
	}
	return nil
}

func (c *cache) put(key string, version uint64, record any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil || len(c.records) >= maxCached {
		c.records = map[string]cached{}
	}
	if version > c.records[key].version {
		c.records[key] = cached{version, record}
	}
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
