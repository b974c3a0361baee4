package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// queueMetrics is a workqueue.MetricsProvider with the metric names and meanings of
// client-go's own Prometheus adapter
// (k8s.io/component-base/metrics/prometheus/workqueue).
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

func newQueueMetrics(reg prometheus.Registerer) *queueMetrics {
	name := []string{"name"}
	gauge := func(n, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_" + n, Help: help}, name)
	}
	counter := func(n, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_" + n, Help: help}, name)
	}
	histogram := func(n, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "workqueue_" + n, Help: help, Buckets: prometheus.ExponentialBuckets(1e-6, 10, 9)}, name)
	}
	m := &queueMetrics{
		depth:      gauge("depth", "Keys that wait for a worker."),
		unfinished: gauge("unfinished_work_seconds", "Seconds of running reconciles that work_duration has not counted yet."),
		longest:    gauge("longest_running_processor_seconds", "Seconds that the longest running reconcile has taken."),
		adds:       counter("adds_total", "Keys added to the queue."),
		retries:    counter("retries_total", "Keys queued again after a failure."),
		latency:    histogram("queue_duration_seconds", "Seconds that a key waited for a worker."),
		work:       histogram("work_duration_seconds", "Seconds that the reconcile of a key took."),
	}
	reg.MustRegister(m.depth, m.unfinished, m.longest, m.adds, m.retries, m.latency, m.work)
	return m
}

func (m *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.latency.WithLabelValues(name)
}

func (m *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.work.WithLabelValues(name)
}

func (m *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}

func (m *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}

// seldom is the clock of a queue. Two metrics, about work in progress, need a timer: with it
// every 5 s and not every 0.5 s, which was a quarter of the wake-ups of an idle daemon.
type seldom struct{ clock.RealClock }

// NewTicker is part of clock.WithTicker.
func (s seldom) NewTicker(d time.Duration) clock.Ticker { return s.RealClock.NewTicker(10 * d) }
