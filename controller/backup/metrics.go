package backup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// The values of the label result.
const (
	completedResult = "completed"
	failedResult    = "failed"
)

// Metrics counts backups that have ended. A nil Metrics counts nothing.
type Metrics struct {
	duration *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	total    *prometheus.CounterVec
}

// Register registers the metrics of the backups in s.
func Register(reg prometheus.Registerer, s *store.Store) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "berth_backup_duration_seconds",
			Help:    "Time from the last begin of a backup to its end.",
			Buckets: prometheus.ExponentialBuckets(0.5, 3, 10), // to 2.7 hours
		}, []string{"target", "result"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_backup_bytes_total",
			Help: "Bytes of the archives of completed backups.",
		}, []string{"target"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_backups_total",
			Help: "Backups that have ended.",
		}, []string{"target", "result"}),
	}
	for _, target := range v1.Targets() {
		m.bytes.WithLabelValues(string(target))
		for _, result := range []string{completedResult, failedResult} {
			m.duration.WithLabelValues(string(target), result)
			m.total.WithLabelValues(string(target), result)
		}
	}
	reg.MustRegister(m.duration, m.bytes, m.total, newCollector(s))
	return m
}

// observe counts a backup whose job has ended.
func (m *Metrics) observe(b v1.Backup, j Job) {
	if m == nil {
		return
	}
	target, result := string(b.Spec.Target), completedResult
	if j.Outcome.Err != nil || j.State == NoJob {
		result = failedResult
	}
	m.total.WithLabelValues(target, result).Inc()
	if b.Status.StartedAt != nil {
		m.duration.WithLabelValues(target, result).Observe(max(0, time.Since(*b.Status.StartedAt).Seconds()))
	}
	if result == completedResult {
		m.bytes.WithLabelValues(target).Add(float64(j.Outcome.Size))
	}
}

// collector collects the age of the backups of each volume, and its policy. The series of
// a deleted volume go with it.
type collector struct {
	store               *store.Store
	last, period, since *prometheus.Desc
}

func newCollector(s *store.Store) collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"volume"}, nil)
	}
	return collector{
		store:  s,
		last:   desc("berth_backup_last_completed_timestamp_seconds", "When the newest completed backup of a volume had completed, Unix time; absent without one."),
		period: desc("berth_backup_policy_period_seconds", "The time between two backups of the policy of a volume; absent without one."),
		since:  desc("berth_backup_policy_since_timestamp_seconds", "When the policy of a volume was created, Unix time; absent without one."),
	}
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.last; ch <- c.period; ch <- c.since }

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	var newest map[string]time.Time
	var policies []v1.BackupPolicy
	err := c.store.View(func(tx *store.Tx) (err error) {
		if newest, err = newestCompleted(tx); err == nil {
			policies, err = store.Policies.List(tx)
		}
		return err
	})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.last, err)
		return
	}
	send := func(d *prometheus.Desc, value float64, volume string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, volume)
	}
	for volume, at := range newest {
		send(c.last, unix(at), volume)
	}
	for _, p := range policies {
		send(c.period, time.Duration(p.Spec.Every).Seconds(), p.Meta.ID)
		send(c.since, unix(p.Meta.CreatedAt), p.Meta.ID)
	}
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// newestCompleted returns when the newest completed backup of each volume that is not
// deleted had completed.
func newestCompleted(tx *store.Tx) (map[string]time.Time, error) {
	newest := map[string]time.Time{}
	list, err := store.Backups.List(tx)
	for _, b := range list {
		at := b.Status.FinishedAt
		if v1.BackupStateOf(b) == v1.JobCompleted && at != nil && at.After(newest[b.Spec.VolumeID]) {
			newest[b.Spec.VolumeID] = *at
		}
	}
	for volume := range newest {
		if gone, err := isDeleted(tx, volume); gone || err != nil {
			delete(newest, volume)
		}
	}
	return newest, err
}
