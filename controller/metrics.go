package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// The outcomes of a reconcile: the values of the label result.
const (
	resultSettled  = "settled"
	resultAfter    = "after"
	resultWaiting  = "waiting"
	resultError    = "error"
	resultTerminal = "terminal"
)

// Metrics are shared by every Loop of a process.
type Metrics struct {
	Repaired     *prometheus.CounterVec // drift, by kind: changes that were not made by berth
	StepFailures *prometheus.CounterVec // by step

	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	queue   queueMetrics
}

// NewMetrics registers the metrics of reconciles and of their queues with reg.
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
		Repaired: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_drift_repaired_total",
			Help: "Repairs of changes that were not made by berth (drift), by kind.",
		}, []string{"kind"}),
		StepFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_step_failures_total",
			Help: "Failed steps of containers, by step.",
		}, []string{"step"}),
		queue: queueMetrics{
			depth: prometheus.NewGaugeVec(prometheus.GaugeOpts{
				Name: "workqueue_depth",
				Help: "Keys that wait for a worker.",
			}, []string{"name"}),
			adds: prometheus.NewCounterVec(prometheus.CounterOpts{
				Name: "workqueue_adds_total",
				Help: "Keys added to the queue.",
			}, []string{"name"}),
			latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name:    "workqueue_queue_duration_seconds",
				Help:    "Seconds that a key waited for a worker.",
				Buckets: prometheus.ExponentialBuckets(1e-6, 10, 9),
			}, []string{"name"}),
		},
	}
	reg.MustRegister(m.total, m.seconds, m.Repaired, m.StepFailures, m.queue.depth, m.queue.adds, m.queue.latency)
	return m
}

// begin creates every series of a controller at 0, so that rates exist before the
// first reconcile.
func (m *Metrics) begin(name string) {
	for _, r := range []string{resultSettled, resultAfter, resultWaiting, resultError, resultTerminal} {
		m.total.WithLabelValues(name, r)
	}
	m.seconds.WithLabelValues(name)
}

func (m *Metrics) observe(name, result string, took time.Duration) {
	m.total.WithLabelValues(name, result).Inc()
	m.seconds.WithLabelValues(name).Observe(took.Seconds())
}

// queueMetrics is the workqueue.MetricsProvider of all queues. It records three of client-go's
// metrics, under the names of its own Prometheus adapter. Metrics has the durations of
// reconciles and their failures.
type queueMetrics struct {
	unrecorded
	depth   *prometheus.GaugeVec
	adds    *prometheus.CounterVec
	latency *prometheus.HistogramVec
}

func (m queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.latency.WithLabelValues(name)
}

// unrecorded makes the metrics that nobody reads, and is each of them.
type unrecorded struct{}

func (u unrecorded) NewWorkDurationMetric(string) workqueue.HistogramMetric { return u }

func (u unrecorded) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric { return u }

func (u unrecorded) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return u
}

func (u unrecorded) NewRetriesMetric(string) workqueue.CounterMetric { return u }

func (unrecorded) Inc()            {}
func (unrecorded) Set(float64)     {}
func (unrecorded) Observe(float64) {}
