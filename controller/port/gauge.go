package port

import (
	"github.com/prometheus/client_golang/prometheus"

	"berth/store"
)

// gauge counts the ports of the pool when it is asked.
type gauge struct {
	store *store.Store
	desc  *prometheus.Desc
}

// NewCollector makes the metric berth_ports{in_use}.
func NewCollector(s *store.Store) prometheus.Collector {
	return gauge{s, prometheus.NewDesc("berth_ports", "Ports of the pool, by the flag in_use.", []string{"in_use"}, nil)}
}

// Describe is of prometheus.Collector.
func (g gauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect is of prometheus.Collector.
func (g gauge) Collect(out chan<- prometheus.Metric) {
	var all, flagged int
	err := g.store.View(func(tx *store.Tx) error {
		pools, err := store.Pools.List(tx)
		for _, p := range pools {
			all += p.Spec.Ports.Len()
			flagged += p.Spec.Flagged.Len() // of ports without a claim
			for _, c := range store.Claims(tx, p.Meta.ID) {
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
