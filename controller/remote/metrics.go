package remote

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// metrics tell how the panel is served.
type metrics struct {
	failures *prometheus.CounterVec
	parked   prometheus.Counter
	gone     prometheus.Counter
}

// newMetrics registers with reg, if there is one.
func newMetrics(reg prometheus.Registerer, s *store.Store, settings func() v1.Config) (*metrics, error) {
	m := &metrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_remote_failures_total",
			Help: "Requests that the panel did not accept, by reason.",
		}, []string{"reason"}),
		parked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_remote_parked_total",
			Help: "Transitions that the panel refused for good and that were passed over.",
		}),
		gone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_remote_lost_total",
			Help: "Transitions that were no longer kept when the panel could be told.",
		}),
	}
	for _, r := range reasons {
		m.failures.WithLabelValues(string(r))
	}
	if reg == nil {
		return m, nil
	}
	lag := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_remote_lag_events",
		Help: "Stored transitions that the panel has not got yet; 0 while it is not told.",
	}, func() float64 { return lagOf(s, settings) })
	for _, c := range []prometheus.Collector{m.failures, m.parked, m.gone, lag} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) failed(r reason) { m.failures.WithLabelValues(string(r)).Inc() }

func (m *metrics) parkedOne() { m.parked.Inc() }

func (m *metrics) lost(n uint64) { m.gone.Add(float64(n)) }

// lagOf is read from the store when it is asked.
func lagOf(s *store.Store, settings func() v1.Config) float64 {
	if !settings().Remote.Enabled {
		return 0
	}
	lag := math.NaN()
	err := s.View(func(tx *store.Tx) error {
		last, cursor := store.LastEvent(tx), store.Cursor(tx, cursorName)
		lag = float64(last) - float64(min(cursor, last))
		return nil
	})
	if err != nil {
		return math.NaN()
	}
	return lag
}
