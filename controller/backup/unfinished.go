package backup

import (
	v1 "berth/api/v1"
	"berth/store"
)

type cloner[V any] interface{ Clone() V }

// listing lists the ids of some objects of a kind. It examines an object once for each
// change of it.
type listing[S cloner[S], T cloner[T]] struct {
	*store.Projection[S, T, bool]
}

func newListing[S cloner[S], T cloner[T]](s *store.Store, kind store.Collection[S, T], listed func(v1.Object[S, T]) bool) listing[S, T] {
	return listing[S, T]{store.NewProjection(s, kind, listed)}
}

// ids returns the ids of the objects that are listed.
func (l listing[S, T]) ids() (ids []string, err error) {
	err = l.Read(func(items []store.Projected[bool], _ uint64) {
		for _, item := range items {
			if item.Value {
				ids = append(ids, item.ID)
			}
		}
	})
	return ids, err
}

// needsStep reports whether a backup needs another step.
func needsStep(b v1.Backup) bool {
	return b.Meta.Deleted || !b.Status.State.Finished() || b.Status.ResumeDue || b.Status.Leftover
}

// isUnfinished reports whether a restore needs another step.
func isUnfinished(r v1.Restore) bool { return !r.Status.State.Finished() }
