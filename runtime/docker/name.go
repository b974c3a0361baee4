package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/runtime"
)

// The labels of every container of a store. A client's labels never have labelPrefix.
const (
	labelStore     = "io.berth.store"
	labelContainer = "io.berth.container"
	labelRole      = "io.berth.role"
	labelSpec      = "io.berth.spec"
	labelRevision  = "io.berth.revision"
	labelLife      = "io.berth.incarnation"
	labelPrefix    = "io.berth."
)

// engineName returns the name in Docker. It differs between two stores on one engine.
func engineName(storeID string, n runtime.Name) string {
	sum := sha256.Sum256([]byte(storeID))
	return "berth-" + hex.EncodeToString(sum[:4]) + "-" + string(n.Role) + "-" + n.ID
}

// describe returns the name for errors and logs.
func describe(n runtime.Name) string { return string(n.Role) + " container " + n.ID }

// labels returns the client's labels and berth's own.
func labels(storeID string, s runtime.Spec) map[string]string {
	all := make(map[string]string, len(s.Labels)+6)
	maps.Copy(all, s.Labels)
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, labelPrefix) })
	all[labelStore] = storeID
	all[labelContainer] = s.Name.ID
	all[labelRole] = string(s.Name.Role)
	all[labelSpec] = s.SpecHash
	all[labelRevision] = strconv.FormatUint(s.Revision, 10)
	if s.Incarnation != "" {
		all[labelLife] = s.Incarnation
	}
	return all
}

// nameOf returns the name in a container's labels; ok is false if the container
// is not of this store.
func nameOf(storeID string, labels map[string]string) (n runtime.Name, ok bool) {
	n = runtime.Name{ID: labels[labelContainer], Role: runtime.Role(labels[labelRole])}
	return n, labels[labelStore] == storeID && n.ID != "" && (n.Role == runtime.Server || n.Role == runtime.Install)
}

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
