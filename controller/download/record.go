package download

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/controller/jobs"
	"berth/store"
)

// record records the state and the progress of a download.
func (r *Reconciler) record(p v1.Pull, state v1.PullState, attempts int, now Progress) error {
	return r.Store.Update(func(tx *store.Tx) error {
		return store.Pulls.SetStatus(tx, p.Meta.ID, func(s *v1.PullStatus) {
			s.State, s.Attempts = state, attempts
			now.store(s)
		})
	})
}

func (p Progress) store(s *v1.PullStatus) {
	s.Bytes, s.Total = p.bytes, nil
	if p.total >= 0 {
		s.Total = &p.total
	}
}

// end records that a download has ended, and removes the oldest ones of its volume. last is
// nil if it had not begun.
func (r *Reconciler) end(p v1.Pull, state v1.PullState, message string, last *Progress) error {
	err := r.Store.Update(func(tx *store.Tx) error {
		err := store.Pulls.SetStatus(tx, p.Meta.ID, func(s *v1.PullStatus) {
			now := tx.Now()
			s.State, s.Message, s.FinishedAt = state, v1.MessageText(message), &now
			if last != nil {
				last.store(s)
			}
		})
		return errors.Join(err, prune(tx, p.Spec.VolumeID))
	})
	if err != nil {
		return err
	}
	r.Jobs.Forget(p.Meta.ID)
	r.Metrics.ended(state, last)
	return nil
}

// prune removes the oldest downloads of a volume that have ended, except for the last
// ones.
func prune(tx *store.Tx, volume string) error {
	ended := store.Pulls.ListBy(tx, volume)
	ended = slices.DeleteFunc(ended, func(p v1.Pull) bool { return !p.Status.State.Final() })
	slices.SortFunc(ended, v1.NewestFirst[v1.PullSpec, v1.PullStatus])
	for _, p := range ended[min(kept, len(ended)):] {
		if err := store.Pulls.Purge(tx, p.Meta.ID); err != nil {
			return err
		}
	}
	return nil
}

// Metrics count downloads.
type Metrics struct {
	results *prometheus.CounterVec
	bytes   prometheus.Counter
}

// NewMetrics registers the metrics of downloads. Every label value begins at 0.
func NewMetrics(r prometheus.Registerer, j *jobs.Jobs[Progress]) *Metrics {
	m := &Metrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_pulls_total",
			Help: "Downloads of URLs into volumes that have ended, by result."}, []string{"result"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_pull_bytes_total", Help: "Bytes of downloads that have ended."}),
	}
	for _, state := range v1.PullStates() {
		if state.Final() {
			m.results.WithLabelValues(string(state))
		}
	}
	r.MustRegister(m.results, m.bytes, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_pulls_running", Help: "Downloads of URLs into volumes that run.",
	}, func() float64 { return float64(j.Running()) }))
	return m
}

func (m *Metrics) ended(state v1.PullState, last *Progress) {
	m.results.WithLabelValues(string(state)).Inc()
	if last != nil {
		m.bytes.Add(float64(last.bytes))
	}
}
