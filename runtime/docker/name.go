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

// The labels of every container of ours, and the prefix that no client's may have.
const (
	labelStore     = "io.berth.store"
	labelContainer = "io.berth.container"
	labelRole      = "io.berth.role"
	labelSpec      = "io.berth.spec"
	labelRevision  = "io.berth.revision"
	labelLife      = "io.berth.incarnation"
	labelPrefix    = "io.berth."
)

// engineName is the name in Docker. Two stores on one engine do not meet.
func engineName(storeID string, n runtime.Name) string {
	sum := sha256.Sum256([]byte(storeID))
	return "berth-" + hex.EncodeToString(sum[:4]) + "-" + string(n.Role) + "-" + n.ID
}

// describe is the name in errors and logs.
func describe(n runtime.Name) string { return string(n.Role) + " container " + n.ID }

// labels returns a client's labels and ours.
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

// nameOf returns whose container one is; ok is false if it is not of this store.
func nameOf(storeID string, labels map[string]string) (n runtime.Name, ok bool) {
	n = runtime.Name{ID: labels[labelContainer], Role: runtime.Role(labels[labelRole])}
	return n, labels[labelStore] == storeID && n.ID != "" && (n.Role == runtime.Server || n.Role == runtime.Install)
}

// ids remembers the engine's ids of containers that carry our labels. Labels
// never change, so an id in it is ours for as long as it exists.
type ids struct {
	mu     sync.Mutex
	of     map[runtime.Name]string
	listed time.Time // when the last complete list was asked for
	doubts time.Time // a list that was asked for before does not answer for what is not in it
}

// listFresh is how long a list answers for what is not in it. Only a container
// that was both made and renamed by others within that time could be missed.
const listFresh = time.Second

// learn remembers a complete list that was asked for at a time.
func (i *ids) learn(found []runtime.Found, asked time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, f := range found {
		i.of[f.Name] = f.ContainerID
	}
	i.listed = asked
}

// doubt ends that a list answers for what is not in it: something may have been
// made that is not known here.
func (i *ids) doubt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.doubts = time.Now()
}

// absent reports whether a list shows that there is no n.
func (i *ids) absent(n runtime.Name) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, known := i.of[n]
	return !known && i.listed.After(i.doubts) && time.Since(i.listed) < listFresh
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

// drop forgets id, unless n has another one by now.
func (i *ids) drop(n runtime.Name, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.of[n] == id {
		delete(i.of, n)
	}
}
