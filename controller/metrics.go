package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// The verdicts of a reconcile, the values of the label result.
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

// Kinds says which values Repaired will be given, so that they show at 0.
func (m *Metrics) Kinds(kinds ...string) {
	if m == nil {
		return
	}
	for _, k := range kinds {
		m.repaired.WithLabelValues(k)
	}
}

// Repaired counts one change that was made behind berth's back and put right.
func (m *Metrics) Repaired(kind string) {
	if m != nil {
		m.repaired.WithLabelValues(kind).Inc()
	}
}

// Steps sets the names that StepFailed will be given, so that they show at 0.
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
			Help:    "Time that one reconcile took, by controller.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"controller"}),
		repaired: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_drift_repaired_total",
			Help: "Changes made behind berth's back that were put right, by kind.",
		}, []string{"kind"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_step_failures_total",
			Help: "Steps of containers that failed, by step.",
		}, []string{"step"}),
		queue: newQueueMetrics(reg),
	}
	reg.MustRegister(m.total, m.seconds, m.repaired, m.steps)
	return m
}

// begin shows every series of a controller at 0, so that rates exist before
// the first event.
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
