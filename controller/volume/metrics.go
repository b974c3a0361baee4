package volume

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// Collector collects the usage, the limits and the readiness of volumes from the store. Series
// of a deleted volume go with it.
type Collector struct {
	store *store.Store
	usage *prometheus.Desc
	limit *prometheus.Desc
	ready *prometheus.Desc
}

// NewCollector returns a Collector of the volumes in s.
func NewCollector(s *store.Store) Collector {
	return Collector{
		store: s,
		usage: prometheus.NewDesc("berth_volume_usage_bytes", "Bytes that a volume occupies, as last measured.", []string{"volume"}, nil),
		limit: prometheus.NewDesc("berth_volume_limit_bytes", "Bytes that a volume may occupy; absent without a limit.", []string{"volume"}, nil),
		ready: prometheus.NewDesc("berth_volume_ready", "Whether the directory of a volume was there when it was last checked: 1, or 0.",
			[]string{"volume"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c Collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.usage; ch <- c.limit; ch <- c.ready }

// Collect implements prometheus.Collector.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	tx := c.store.Read()
	for _, v := range store.Volumes.List(tx) {
		ch <- prometheus.MustNewConstMetric(c.usage, prometheus.GaugeValue, float64(v.Status.Size), v.Meta.ID)
		if condition := v1.FindCondition(v.Status.Conditions, v1.DirectoryReady); condition.Status != "" {
			ready := 0.0
			if condition.Status == v1.True {
				ready = 1
			}
			ch <- prometheus.MustNewConstMetric(c.ready, prometheus.GaugeValue, ready, v.Meta.ID)
		}
		if limit := store.LimitOf(tx, v); limit > 0 {
			ch <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(limit), v.Meta.ID)
		}
	}
}
