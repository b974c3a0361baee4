package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// The outcomes of a reconcile: the values of the label result.
const (
	resultSettled  = "settled"
	resultAgain    = "again"
	resultAfter    = "after"
	resultWaiting  = "waiting"
	resultError    = "error"
	resultTerminal = "terminal"
)

// Metrics are shared by every Loop of a process. A nil *Metrics records nothing.
type Metrics struct {
	total    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	repaired *prometheus.CounterVec
	steps    *prometheus.CounterVec
	queue    *queueMetrics
}

// Kinds declares the kinds that Repaired counts, so that their series start at 0.
func (m *Metrics) Kinds(kinds ...string) {
	if m == nil {
		return
	}
	for _, k := range kinds {
		m.repaired.WithLabelValues(k)
	}
}

// Repaired counts one repaired drift: a change that was not made by berth.
func (m *Metrics) Repaired(kind string) {
	if m != nil {
		m.repaired.WithLabelValues(kind).Inc()
	}
}

// Steps declares the names that StepFailed counts, so that their series start at 0.
func (m *Metrics) Steps(names ...string) {
	if m == nil {
		return
	}
	for _, name := range names {
		m.steps.WithLabelValues(name)
	}
}

// StepFailed counts one failure of a step.
func (m *Metrics) StepFailed(name string) {
	if m != nil {
		m.steps.WithLabelValues(name).Inc()
	}
}

// NewMetrics registers the reconcile metrics and client-go's workqueue metrics
// with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_reconcile_total",
			Help: "Reconciles, by controller and result.",
		}, []string{"controller", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "berth_reconcile_duration_seconds",
			Help:    "Duration of one reconcile in seconds, by controller.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"controller"}),
		repaired: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_drift_repaired_total",
			Help: "Repairs of changes that were not made by berth (drift), by kind.",
		}, []string{"kind"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_step_failures_total",
			Help: "Failed steps of containers, by step.",
		}, []string{"step"}),
		queue: newQueueMetrics(reg),
	}
	reg.MustRegister(m.total, m.seconds, m.repaired, m.steps)
	return m
}

// begin creates every series of a controller at 0, so that rates exist before the
// first reconcile.
func (m *Metrics) begin(name string) {
	if m == nil {
		return
	}
	for _, r := range []string{resultSettled, resultAgain, resultAfter, resultWaiting, resultError, resultTerminal} {
		m.total.WithLabelValues(name, r)
	}
	m.seconds.WithLabelValues(name)
}

func (m *Metrics) observe(name, result string, took time.Duration) {
	if m == nil {
		return
	}
	m.total.WithLabelValues(name, result).Inc()
	m.seconds.WithLabelValues(name).Observe(took.Seconds())
}

func (m *Metrics) queues() workqueue.MetricsProvider {
	if m == nil {
		return nil
	}
	return m.queue
}
