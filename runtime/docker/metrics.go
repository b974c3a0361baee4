package docker

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"berth/runtime"
)

// Values of the metric label "result".
const (
	ok          = "ok"
	refused     = "refused"     // the engine answered with an error
	unavailable = "unavailable" // the engine did not answer in time, or not at all
)

type metrics struct {
	requests *prometheus.HistogramVec
}

// newMetrics registers the metrics with r, unless r is nil. Every combination of
// labels starts at 0, so that rates exist before the first failure.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_engine_request_duration_seconds",
		Help:    "Time that requests to the container engine took, by operation and result.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"operation", "result"})}
	for _, op := range operations {
		for _, result := range []string{ok, refused, unavailable} {
			m.requests.WithLabelValues(op.name, result)
		}
	}
	if r != nil {
		r.MustRegister(m.requests)
	}
	return m
}

// resultOf returns the label for err. "Not found" is a successful answer.
func resultOf(err error) string {
	switch means := classify(err); {
	case err == nil, errors.Is(means, runtime.ErrNotFound), means == errNotRunning, means == errNotPaused:
		return ok
	case errors.Is(means, runtime.ErrUnavailable):
		return unavailable
	default:
		return refused
	}
}
