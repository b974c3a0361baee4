package container

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Register registers this controller's metrics: berth_containers, counted from the
// store at each scrape, the kinds of drift and the steps that can fail.
func Register(reg prometheus.Registerer, m *controller.Metrics, s *store.Store) {
	m.Kinds("removed", "started", "paused", "limits", "orphan")
	m.Steps(append(actionNames(), removeOrphan)...)
	reg.MustRegister(phaseCollector{s, prometheus.NewDesc("berth_containers", "Containers, by state.", []string{"state"}, nil)})
}

type phaseCollector struct {
	store *store.Store
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (p phaseCollector) Describe(ch chan<- *prometheus.Desc) { ch <- p.desc }

// Collect implements prometheus.Collector: it counts the containers by phase.
func (p phaseCollector) Collect(ch chan<- prometheus.Metric) {
	count := map[v1.Phase]int{}
	err := p.store.View(func(tx *store.Tx) error {
		all, err := store.Containers.List(tx)
		for _, c := range all {
			if c.Status.Phase == "" {
				c.Status.Phase = v1.Installing
			}
			count[c.Status.Phase]++
		}
		return err
	})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(p.desc, err)
		return
	}
	for _, phase := range v1.Phases() {
		ch <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, float64(count[phase]), string(phase))
	}
}
