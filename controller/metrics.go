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
		queue: newQueueMetrics(),
	}
	reg.MustRegister(m.total, m.seconds, m.Repaired, m.StepFailures)
	m.queue.register(reg)
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

// queueMetrics is the workqueue.MetricsProvider of all queues. Names, labels and buckets are those of
// the metrics that Kubernetes' own controllers have, so that their dashboards and alerts work.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

func newQueueMetrics() queueMetrics {
	label := []string{"name"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_" + name, Help: help}, label)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_" + name, Help: help}, label)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		buckets := prometheus.ExponentialBuckets(10e-9, 10, 12)
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_" + name, Help: help, Buckets: buckets}, label)
	}
	return queueMetrics{
		depth:      gauge("depth", "Keys that wait for a worker."),
		adds:       counter("adds_total", "Keys added to the queue."),
		latency:    histogram("queue_duration_seconds", "Seconds that a key waited for a worker."),
		work:       histogram("work_duration_seconds", "Seconds that a worker processed a key."),
		retries:    counter("retries_total", "Keys added again after a failure."),
		unfinished: gauge("unfinished_work_seconds", "Sum of the seconds for which the keys in progress have been processed."),
		longest:    gauge("longest_running_processor_seconds", "Seconds for which the key longest in progress has been processed."),
	}
}

func (m queueMetrics) register(reg prometheus.Registerer) {
	reg.MustRegister(m.depth, m.adds, m.latency, m.work, m.retries, m.unfinished, m.longest)
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

func (m queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.work.WithLabelValues(name)
}

func (m queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}

func (m queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}
