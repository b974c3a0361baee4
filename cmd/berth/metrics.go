package main

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"berth/controller"
)

// registry is a registry that calls collectors in goroutines of its own: a panic of one leaves out its
// series, and does not end the daemon.
type registry struct {
	*prometheus.Registry
	log *slog.Logger
}

func (r registry) Register(c prometheus.Collector) error {
	return r.Registry.Register(caught{c, r.log})
}

func (r registry) MustRegister(list ...prometheus.Collector) {
	for _, c := range list {
		r.Registry.MustRegister(caught{c, r.log})
	}
}

type caught struct {
	prometheus.Collector
	log *slog.Logger
}

func (c caught) Collect(to chan<- prometheus.Metric) {
	_ = controller.Catch(c.log, "collector", func() error { c.Collector.Collect(to); return nil })
}
