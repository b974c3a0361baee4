package backup

import (
	"errors"
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
func Register(reg prometheus.Registerer, s *store.Store, limits func() v1.BackupsConfig) *Metrics {
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
	reg.MustRegister(m.duration, m.bytes, m.total, newCollector(s, limits))
	return m
}

// observe counts a backup that has completed or failed.
func (m *Metrics) observe(to v1.Target, s v1.BackupStatus) {
	if m == nil {
		return
	}
	target, result := string(to), completedResult
	if s.State != v1.JobCompleted {
		result = failedResult
	}
	m.total.WithLabelValues(target, result).Inc()
	if s.StartedAt != nil {
		m.duration.WithLabelValues(target, result).Observe(max(0, time.Since(*s.StartedAt).Seconds()))
	}
	if result == completedResult {
		m.bytes.WithLabelValues(target).Add(float64(s.Size))
	}
}

// collector collects the age of the backups of each volume, its policy, and the space that
// the archives of each target take. The series of a deleted volume go with it.
type collector struct {
	store               *store.Store
	limits              func() v1.BackupsConfig
	last, period, since *prometheus.Desc
	usage, limit        *prometheus.Desc // of each target
}

func newCollector(s *store.Store, limits func() v1.BackupsConfig) collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"volume"}, nil)
	}
	return collector{
		store: s, limits: limits,
		usage: prometheus.NewDesc("berth_backup_usage_bytes", "Bytes of the archives of a target.", []string{"target"}, nil),
		limit: prometheus.NewDesc("berth_backup_limit_bytes", "The configured limit of berth_backup_usage_bytes; absent without one.",
			[]string{"target"}, nil),
		last: desc("berth_backup_last_completed_timestamp_seconds",
			"When the newest completed backup of a volume had completed, Unix time; absent without one."),
		period: desc("berth_backup_policy_period_seconds",
			"The time between two backups of the policy of a volume, with cron the longer one of the last and the present one; absent without one."),
		since: desc("berth_backup_policy_since_timestamp_seconds", "When the policy of a volume was created, Unix time; absent without one."),
	}
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.last, c.period, c.since, c.usage, c.limit} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value float64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
	}
	tx := c.store.Read()
	newest, err := newestCompleted(tx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.last, err)
		return
	}
	for volume, at := range newest {
		send(c.last, unix(at), volume)
	}
	for _, p := range store.Policies.List(tx) {
		send(c.period, time.Duration(max(p.Spec.Every, p.Status.Period)).Seconds(), p.Meta.ID)
		send(c.since, unix(p.Meta.CreatedAt), p.Meta.ID)
	}
	totals := store.BackupTotals(tx)
	for _, t := range v1.Targets() {
		send(c.usage, float64(totals[t].Bytes), string(t))
		if limit := c.limits().MaxSizeOf(t); limit > 0 {
			send(c.limit, float64(limit), string(t))
		}
	}
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// newestCompleted returns when the newest completed backup of each volume that is not deleted
// had completed.
func newestCompleted(tx *store.Tx) (newest map[string]time.Time, err error) {
	newest = map[string]time.Time{}
	last := map[string]v1.Backup{}
	for _, b := range store.Backups.List(tx) {
		at := b.Status.FinishedAt
		if v1.BackupStateOf(b) != v1.JobCompleted || at == nil {
			continue
		}
		if before, found := last[b.Spec.VolumeID]; !found || v1.NewestFirst(b, before) < 0 {
			last[b.Spec.VolumeID], newest[b.Spec.VolumeID] = b, *at
		}
	}
	for volume := range newest {
		gone, failed := isDeleted(tx, volume)
		if err = errors.Join(err, failed); gone {
			delete(newest, volume)
		}
	}
	return newest, err
}
