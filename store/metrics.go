package store

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is nil if there is no registerer.
type metrics struct {
	commit     prometheus.Histogram
	registerer prometheus.Registerer
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	if r == nil {
		return nil, nil
	}
	m := &metrics{registerer: r, commit: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "berth_store_commit_duration_seconds",
		Help:    "Time that a commit of the store to the disk took.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9), // 0.1 ms to 6.5 s
	})}
	return m, r.Register(m.commit)
}

func (m *metrics) observe(d time.Duration) {
	if m != nil {
		m.commit.Observe(d.Seconds())
	}
}

func (m *metrics) unregister() {
	if m != nil {
		m.registerer.Unregister(m.commit)
	}
}
