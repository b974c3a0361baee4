package main

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// nodeCollector collects the metrics of the host as berth observes it: the build,
// the engine, the store and the disks.
type nodeCollector struct {
	daemon *daemon
	build  *prometheus.Desc
	engine *prometheus.Desc
	store  *prometheus.Desc
	free   *prometheus.Desc
	size   *prometheus.Desc
}

func newNodeCollector(d *daemon) nodeCollector {
	return nodeCollector{
		daemon: d,
		build:  prometheus.NewDesc("berth_build_info", "1, with the version of berth and of Go.", []string{"version", "goversion"}, nil),
		engine: prometheus.NewDesc("berth_engine_up", "1 if the engine answered the last check, at most 5 s ago; else 0.", nil, nil),
		store:  prometheus.NewDesc("berth_store_writable", "1 if the store accepts changes, else 0.", nil, nil),
		free:   prometheus.NewDesc("berth_disk_free_bytes", "Free bytes of the file system of data (storage.data_path) or volumes (storage.volumes_path).", []string{"disk"}, nil),
		size:   prometheus.NewDesc("berth_disk_size_bytes", "Size of the file system of data or volumes in bytes.", []string{"disk"}, nil),
	}
}

// Describe is part of prometheus.Collector.
func (n nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{n.build, n.engine, n.store, n.free, n.size} {
		ch <- d
	}
}

// Collect is part of prometheus.Collector.
func (n nodeCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(n.build, 1, version, runtime.Version())
	gauge(n.engine, number(n.daemon.engineHealth().Reachable))
	gauge(n.store, number(n.daemon.store.Writable() == nil))
	storage := n.daemon.settings.Current().Storage
	for disk, path := range map[string]string{"data": storage.DataPath, "volumes": storage.VolumesPath} {
		var s unix.Statfs_t
		if err := unix.Statfs(path, &s); err != nil {
			ch <- prometheus.NewInvalidMetric(n.free, err)
			continue
		}
		gauge(n.free, float64(s.Bavail)*float64(s.Bsize), disk)
		gauge(n.size, float64(s.Blocks)*float64(s.Bsize), disk)
	}
}

func number(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
