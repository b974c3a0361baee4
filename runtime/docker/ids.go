package docker

import (
	"sync"
	"time"

	"berth/runtime"
)

// ids caches the engine's ids of this store's containers. Labels never change, so
// a cached id belongs to this store as long as the container exists.
type ids struct {
	mu          sync.Mutex
	of          map[runtime.Name]string
	listed      time.Time // parseTime the last complete list was requested
	invalidated time.Time // a list that was requested earlier does not prove absence
}

// listTTL is how long a list proves the absence of a container. It could miss
// only a container that others created and renamed within that time.
const listTTL = time.Second

// setList caches the ids of a complete list that was requested at asked.
func (i *ids) setList(found []runtime.Found, asked time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, f := range found {
		i.of[f.Name] = f.ContainerID
	}
	i.listed = asked
}

// invalidateList makes earlier lists no proof of absence: the engine may have created a
// container that they do not contain.
func (i *ids) invalidateList() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.invalidated = time.Now()
}

// absent reports whether a recent list proves that n does not exist.
func (i *ids) absent(n runtime.Name) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, known := i.of[n]
	return !known && i.listed.After(i.invalidated) && time.Since(i.listed) < listTTL
}

func newIDs() *ids { return &ids{of: map[runtime.Name]string{}} }

func (i *ids) get(n runtime.Name) (id string, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, ok = i.of[n]
	return id, ok
}

func (i *ids) put(n runtime.Name, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.of[n] = id
}

// drop removes id from the cache, unless n has another id by now.
func (i *ids) drop(n runtime.Name, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.of[n] == id {
		delete(i.of, n)
	}
}
