package port

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	v1 "berth/api/v1"
	"berth/store"
)

// recordChunk is how many pools are noted in one update. A status may take 11 KiB.
const recordChunk = 64

// outcome is what a sync says about every pool of its family.
type outcome struct {
	state, reason string
	known         bool // which rules are in force
	err           error
}

// level is how loud it is that rules are not in force: an operator who turned
// the firewall off knows.
func (o outcome) level() slog.Level {
	if o.state == v1.FirewallDisabled {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

func outcomeOf(err error) outcome {
	var refusal Refusal
	switch {
	case err == nil:
		return outcome{state: v1.FirewallApplied, known: true}
	case errors.As(err, &refusal):
		return outcome{state: refusal.State(), reason: refusal.Error(), known: true, err: err}
	}
	return outcome{state: v1.FirewallPending, reason: err.Error(), err: err}
}

// record stores the outcome with every pool, and forgets the pools that are
// empty, and were when the rules were made of them.
func (r *reconciler) record(pools []v1.Pool, o outcome) error {
	for chunk := range slices.Chunk(pools, recordChunk) {
		told := false
		err := r.store.Update(func(tx *store.Tx) error {
			for _, p := range chunk {
				changed, err := recordOne(tx, p, o)
				if err != nil {
					return err
				}
				told = told || changed
			}
			return nil
		})
		if err != nil {
			return err
		}
		if told && o.err != nil {
			r.log.Log(context.Background(), o.level(), "firewall rules are not in force", "state", o.state, "reason", o.reason)
		}
	}
	return nil
}

// recordOne says whether the state or the reason is a new one. synced is the pool
// as it was when the rules were made of it; it may have changed since.
func recordOne(tx *store.Tx, synced v1.Pool, o outcome) (changed bool, err error) {
	now, err := store.Pools.Get(tx, synced.Meta.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if o.known && isEmpty(synced) && isEmpty(now) {
		return false, store.Pools.Purge(tx, synced.Meta.ID)
	}
	changed = now.Status.State != o.state || now.Status.Reason != o.reason
	return changed, store.Pools.SetStatus(tx, synced.Meta.ID, func(s *v1.PoolStatus) {
		s.State, s.Reason = o.state, o.reason
		switch {
		case o.err == nil:
			s.Allowed = synced.Spec.Ports.Clone()
		case o.known:
			s.Allowed = v1.PortSet{}
		}
	})
}

// isEmpty reports whether a pool can be forgotten. A port that is claimed is
// never taken out of its pool, so an empty pool has no claims.
func isEmpty(p v1.Pool) bool { return p.Spec.Ports.Len() == 0 }
