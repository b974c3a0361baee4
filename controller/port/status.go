package port

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// recordChunk is the number of pools per update. The status of one may take 11 KiB.
const recordChunk = 64

// outcome is the result of a sync, for every pool of the family.
type outcome struct {
	state, reason string
	known         bool // the sync determined which rules are in force
	err           error
}

// level returns the log level of a failed sync. It is low if the operator disabled
// the firewall.
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

// record stores the outcome in the status of every pool. It purges pools that are
// empty and were empty when the rules were computed.
func (r *reconciler) record(pools []v1.Pool, o outcome) error {
	for chunk := range slices.Chunk(pools, recordChunk) {
		anyChanged := false
		err := r.store.Update(func(tx *store.Tx) error {
			for _, p := range chunk {
				changed, err := recordOne(tx, p, o)
				if err != nil {
					return err
				}
				anyChanged = anyChanged || changed
			}
			return nil
		})
		if err != nil {
			return err
		}
		if anyChanged && o.err != nil {
			r.log.Log(context.Background(), o.level(), "firewall rules for the port pool are not applied", "state", o.state, "reason", o.reason)
		}
	}
	return nil
}

// recordOne stores the outcome in the status of one pool, and reports whether its
// state or reason changed. synced is the pool that the rules were computed from; the
// stored pool may have changed since.
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

// isEmpty reports whether a pool has no ports. An empty pool has no claims, because a
// claimed port is never removed from its pool.
func isEmpty(p v1.Pool) bool { return p.Spec.Ports.Len() == 0 }

// gauge counts the ports of all pools when it is collected.
type gauge struct {
	store *store.Store
	desc  *prometheus.Desc
}

// NewCollector returns the collector of the metric berth_ports{in_use}.
func NewCollector(s *store.Store) prometheus.Collector {
	return gauge{s, prometheus.NewDesc("berth_ports", "Ports in the pools, by the flag in_use.", []string{"in_use"}, nil)}
}

// Describe implements prometheus.Collector.
func (g gauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g gauge) Collect(out chan<- prometheus.Metric) {
	var all, flagged int
	tx := g.store.Read()
	for _, p := range store.Pools.List(tx) {
		all += p.Spec.Ports.Len()
		flagged += p.Spec.Flagged.Len() // ports without a claim
		for _, c := range store.Claims(tx, p.Meta.ID, 0) {
			if c.InUse {
				flagged++
			}
		}
	}
	out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(flagged), "true")
	out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(all-flagged), "false")
}
