package schedule

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// Metrics counts runs of schedules. A nil Metrics counts nothing.
type Metrics struct{ runs *prometheus.CounterVec }

// Register registers the metrics of the schedules in s.
func Register(reg prometheus.Registerer, s *store.Store) *Metrics {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_schedule_runs_total",
		Help: "Runs of schedules that have ended or were skipped."}, []string{"result"})}
	for _, state := range []v1.RunState{v1.RunCompleted, v1.RunFailed, v1.RunSkipped} {
		m.runs.WithLabelValues(string(state))
	}
	labels := []string{"container", "schedule"}
	reg.MustRegister(m.runs, collector{s,
		prometheus.NewDesc("berth_schedule_last_completed_timestamp_seconds",
			"When a run of a schedule last completed, Unix time; absent if none has.", labels, nil),
		prometheus.NewDesc("berth_schedule_failures", "How many of the last runs of a schedule failed, without one that completed since.",
			labels, nil),
	})
	return m
}

// observe counts a run.
func (m *Metrics) observe(state v1.RunState) {
	if m != nil {
		m.runs.WithLabelValues(string(state)).Inc()
	}
}

// collector collects how the last runs of each schedule ended. The series of a deleted schedule go with it.
type collector struct {
	store               *store.Store
	completed, failures *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.completed
	ch <- c.failures
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range store.Schedules.List(c.store.Read()) {
		if at := s.Status.CompletedAt; !at.IsZero() {
			ch <- prometheus.MustNewConstMetric(c.completed, prometheus.GaugeValue, float64(at.UnixNano())/1e9, s.Spec.Container, s.Spec.Name)
		}
		ch <- prometheus.MustNewConstMetric(c.failures, prometheus.GaugeValue, float64(s.Status.Failures), s.Spec.Container, s.Spec.Name)
	}
}
