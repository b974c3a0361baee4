package server

import (
	"encoding/json"
	"iter"
	"sync/atomic"

	v1 "berth/api/v1"
	"berth/store"
)

// encodedContainer is a container as clients see it, encoded once for each revision of it.
type encodedContainer struct {
	revision uint64
	etag     string
	labels   map[string]string
	summary  []byte                 // its summaryView
	detail   atomic.Pointer[detail] // nil: not encoded yet
}

// detail is the encoded containerView of a container. It depends on more than the
// container.
type detail struct {
	engine  EngineHealth
	volumes string // the directory of all volumes
	body    []byte
}

// encodedContainers are all containers, encoded. See ADR 0110.
type encodedContainers struct {
	*store.Projection[v1.ContainerSpec, v1.ContainerStatus, *encodedContainer]
	whole atomic.Pointer[wholeList] // nil: not encoded yet
}

// wholeList is the encoded list of all containers of a revision of the store.
type wholeList struct {
	revision uint64
	body     []byte
}

func newEncodedContainers(db *store.Store) *encodedContainers {
	return &encodedContainers{Projection: store.NewProjection(db, store.Containers, encodeContainer)}
}

func encodeContainer(o v1.Container) *encodedContainer {
	summary, _ := json.Marshal(summaryOf(o)) // cannot fail: plain data
	return &encodedContainer{revision: o.Meta.Revision, etag: etag(o), labels: o.Spec.Labels, summary: summary}
}

// list returns the list of all containers as JSON. The caller must not change it.
func (e *encodedContainers) list() (body []byte, err error) {
	err = e.Read(func(items []store.Projected[*encodedContainer], rev uint64) {
		if last := e.whole.Load(); last != nil && last.revision == rev {
			body = last.body
			return
		}
		size := len(`{"containers":[]}`)
		for _, item := range items {
			size += len(item.Value.summary) + 1
		}
		b := listWriter{body: make([]byte, 0, size)}
		for _, item := range items {
			b.add(item.Value.summary)
		}
		body = b.end("")
		e.whole.Store(&wholeList{rev, body})
	})
	return body, err
}

// page returns the containers of a page that match, and the continuation.
func (e *encodedContainers) page(p listPage, matches func(id string, c *encodedContainer) bool) (list []store.Projected[*encodedContainer], next string, err error) {
	err = e.Read(func(items []store.Projected[*encodedContainer], _ uint64) {
		i, found := store.Search(items, p.after)
		if found {
			i++
		}
		list, next = take(p, matching(items[i:], matches))
	})
	return list, next, err
}

func matching(items []store.Projected[*encodedContainer], matches func(string, *encodedContainer) bool) iter.Seq2[string, store.Projected[*encodedContainer]] {
	return func(yield func(string, store.Projected[*encodedContainer]) bool) {
		for _, item := range items {
			if matches(item.ID, item.Value) && !yield(item.ID, item) {
				return
			}
		}
	}
}

// listWriter writes a list of encoded containers as JSON: {"containers": [...], "continue": "..."}.
type listWriter struct {
	body []byte
	more bool
}

func (w *listWriter) add(summary []byte) {
	if w.more {
		w.body = append(w.body, ',')
	} else {
		w.body = append(w.body, `{"containers":[`...)
	}
	w.body, w.more = append(w.body, summary...), true
}

// addMeasured adds a container with a sample, or null.
func (w *listWriter) addMeasured(summary []byte, sample *v1.Stats) {
	stats, _ := json.Marshal(sample) // cannot fail: plain data
	w.add(summary[:len(summary)-1])
	w.body = append(append(append(w.body, `,"stats":`...), stats...), '}')
}

// end returns the body, with the continuation unless it is empty.
func (w *listWriter) end(next string) []byte {
	if !w.more {
		w.body = append(w.body, `{"containers":[`...)
	}
	w.body = append(w.body, ']')
	if next != "" {
		w.body = append(append(append(w.body, `,"continue":"`...), next...), '"') // it is base64
	}
	return append(w.body, '}')
}
