package port

import (
	"github.com/prometheus/client_golang/prometheus"

	"berth/store"
)

// gauge counts the ports of all pools when it is collected.
type gauge struct {
	store *store.Store
	desc  *prometheus.Desc
}

// NewCollector returns the collector of the metric berth_ports{in_use}.
func NewCollector(s *store.Store) prometheus.Collector {
	return gauge{s, prometheus.NewDesc("berth_ports", "Ports in the pools, by the flag in_use.", []string{"in_use"}, nil)}
}

// Describe implements prometheus.Collector.
func (g gauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g gauge) Collect(out chan<- prometheus.Metric) {
	var all, flagged int
	err := g.store.View(func(tx *store.Tx) error {
		pools, err := store.Pools.List(tx)
		for _, p := range pools {
			all += p.Spec.Ports.Len()
			flagged += p.Spec.Flagged.Len() // ports without a claim
			for _, c := range store.Claims(tx, p.Meta.ID, 0) {
				if c.InUse {
					flagged++
				}
			}
		}
		return err
	})
	if err != nil {
		out <- prometheus.NewInvalidMetric(g.desc, err)
		return
	}
	out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(flagged), "true")
	out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(all-flagged), "false")
}
