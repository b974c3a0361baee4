package stats

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"berth/runtime"
)

// Collector exports the resource usage of each running container to Prometheus. It
// measures when it is scraped, so that the series of a container end with its run.
type Collector struct {
	fleet  Fleet
	meter  Meter
	log    *slog.Logger
	series []series
}

type series struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(runtime.Stats) float64
}

// NewCollector returns a collector. The caller registers it.
func NewCollector(f Fleet, m Meter, log *slog.Logger) *Collector {
	c := &Collector{fleet: f, meter: m, log: log}
	counter, gauge := prometheus.CounterValue, prometheus.GaugeValue
	c.add("cpu_seconds_total", "CPU time used by the run.", counter, func(s runtime.Stats) float64 { return s.CPU.Seconds() })
	c.add("memory_bytes", "Memory used, without cache.", gauge, func(s runtime.Stats) float64 { return float64(s.Memory) })
	c.add("memory_limit_bytes", "Memory limit; the memory of the host if there is none.", gauge,
		func(s runtime.Stats) float64 { return float64(s.MemoryLimit) })
	c.add("network_receive_bytes_total", "Bytes received by the run.", counter, func(s runtime.Stats) float64 { return float64(s.NetworkRx) })
	c.add("network_transmit_bytes_total", "Bytes sent by the run.", counter, func(s runtime.Stats) float64 { return float64(s.NetworkTx) })
	c.add("fs_read_bytes_total", "Bytes read from block devices by the run.", counter,
		func(s runtime.Stats) float64 { return float64(s.BlockRead) })
	c.add("fs_write_bytes_total", "Bytes written to block devices by the run.", counter,
		func(s runtime.Stats) float64 { return float64(s.BlockWrite) })
	return c
}

func (c *Collector) add(name, help string, kind prometheus.ValueType, value func(runtime.Stats) float64) {
	desc := prometheus.NewDesc("berth_container_"+name, help, []string{"container"}, nil)
	c.series = append(c.series, series{desc, kind, value})
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, s := range c.series {
		to <- s.desc
	}
}

// Collect implements prometheus.Collector. It omits containers that cannot be measured
// within roundTimeout.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), roundTimeout)
	defer cancel()
	for id, stats := range c.measure(ctx) {
		for _, s := range c.series {
			to <- prometheus.MustNewConstMetric(s.desc, s.kind, s.value(stats), id)
		}
	}
}

func (c *Collector) measure(ctx context.Context) map[string]runtime.Stats {
	var mu sync.Mutex
	all := map[string]runtime.Stats{}
	each(c.log, c.fleet.RunningIDs(), func(id string) {
		containerID, _, ok := c.fleet.Running(id)
		if !ok {
			return
		}
		stats, err := c.meter.Stats(ctx, containerID)
		if err != nil {
			return // the run has ended, or the engine does not answer: no series
		}
		mu.Lock()
		defer mu.Unlock()
		all[id] = stats
	})
	return all
}
