package volume

import (
	"slices"

	v1 "berth/api/v1"
)

// walks is the results of the last walk of each volume.
type walks struct {
	used    map[string]v1.Usage
	changed map[string]bool // the walk found another usage than the one before
}

// record adds the result of a walk.
func (w *walks) record(id string, used v1.Usage) {
	before, known := w.used[id]
	w.used[id], w.changed[id] = used, known && used != before
}

// order sorts ids: those whose last walk found a change first.
func (w *walks) order(ids []string) {
	rank := func(id string) int {
		if w.changed[id] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(ids, func(a, b string) int { return rank(a) - rank(b) })
}

// keep drops the results of all volumes but those of ids.
func (w *walks) keep(ids []string) {
	if len(w.used) <= len(ids) {
		return
	}
	kept := newWalks()
	for _, id := range ids {
		if used, known := w.used[id]; known {
			kept.used[id], kept.changed[id] = used, w.changed[id]
		}
	}
	*w = kept
}

func newWalks() walks { return walks{map[string]v1.Usage{}, map[string]bool{}} }
