package download

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
)

// Metrics count downloads.
type Metrics struct {
	results *prometheus.CounterVec
	bytes   prometheus.Counter
}

// NewMetrics registers the metrics of downloads. Every label value begins at 0.
func NewMetrics(r prometheus.Registerer, j *Jobs) *Metrics {
	m := &Metrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_pulls_total", Help: "Downloads of URLs into volumes that have ended, by result."}, []string{"result"}),
		bytes:   prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_pull_bytes_total", Help: "Bytes of downloads that have ended."}),
	}
	for _, state := range v1.PullStates() {
		if state.Final() {
			m.results.WithLabelValues(string(state))
		}
	}
	r.MustRegister(m.results, m.bytes, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_pulls_running", Help: "Downloads of URLs into volumes that run.",
	}, func() float64 { return float64(j.running()) }))
	return m
}

func (m *Metrics) ended(state v1.PullState, bytes int64) {
	m.results.WithLabelValues(string(state)).Inc()
	m.bytes.Add(float64(bytes))
}
