package remote

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// metrics counts failed deliveries, parked transitions and lost transitions.
type metrics struct {
	failures *prometheus.CounterVec
	parked   prometheus.Counter
	lost     prometheus.Counter
}

// newMetrics registers the metrics with reg, unless reg is nil.
func newMetrics(reg prometheus.Registerer, s *store.Store, settings func() v1.Config) (*metrics, error) {
	m := &metrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_remote_failures_total",
			Help: "Requests that the panel did not accept, by reason.",
		}, []string{"reason"}),
		parked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_remote_parked_total",
			Help: "Transitions that the panel refused and that were skipped.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_remote_lost_total",
			Help: "Transitions that were removed by the retention before the panel received them.",
		}),
	}
	for _, r := range []reason{unreachable, timeout, serverError, busy, unauthorized, missing, redirected, refused, storeFailed} {
		m.failures.WithLabelValues(string(r))
	}
	if reg == nil {
		return m, nil
	}
	lag := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_remote_lag_events",
		Help: "Stored transitions that the panel has not received yet; 0 while remote.enabled is false.",
	}, func() float64 { return lagOf(s, settings) })
	for _, c := range []prometheus.Collector{m.failures, m.parked, m.lost, lag} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// lagOf returns the number of transitions after the cursor, 0 if the webhook is disabled.
func lagOf(s *store.Store, settings func() v1.Config) float64 {
	if !settings().Remote.Enabled {
		return 0
	}
	tx := s.Read()
	_, last := tx.EventBounds()
	return float64(last) - float64(min(store.Cursor(tx, cursorName), last))
}
