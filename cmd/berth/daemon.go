package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"berth/api/limit"
	"berth/api/server"
	"berth/api/stream"
	"berth/api/ui"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/controller"
	"berth/controller/console"
	"berth/controller/stats"
	"berth/runtime/cgroup"
	"berth/runtime/docker"
	"berth/runtime/hostmount"
	"berth/runtime/volume"
	"berth/runtime/volume/archiver"
	"berth/store"
)

// pinnedMounts is the directory below which the mounts of containers are pinned while
// the engine mounts them, one directory for each store.
const pinnedMounts = "/run/berth"

// daemon holds every part of a running berth.
type daemon struct {
	settings *config.Settings
	log      *slog.Logger
	metrics  *prometheus.Registry

	store    *store.Store
	wrong    *limit.Rate // wrong tokens, of the API and of SFTP
	engine   *docker.Engine
	volumes  *volume.Manager
	mounts   *hostmount.Pinner
	egress   *egressFilter
	hub      *stream.Hub
	consoles *console.Manager
	sampler  *stats.Sampler
	meter    *cgroup.Reader
	server   *server.Server
	sftp     *sftpServer // nil: not enabled
	node     *node
	targets  targets // of backups

	began  time.Time
	health atomic.Pointer[health] // of the engine; nil: unknown yet
	listed atomic.Bool            // the engine's containers were listed once
	parts  []part                 // run concurrently until the daemon stops
}

// newDaemon creates every part. None of them does anything before run.
func newDaemon(s *config.Settings, log *slog.Logger) (*daemon, error) {
	d := &daemon{settings: s, log: log, metrics: prometheus.NewRegistry(), wrong: limit.NewRate(limit.WrongTokens()), began: time.Now()}
	d.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c := s.Current()
	var err error
	d.store, err = store.Open(filepath.Join(c.Storage.DataPath, "store"), store.Options{Registerer: d.metrics, Log: log})
	if err != nil {
		return nil, err
	}
	if err := d.assemble(); err != nil {
		return nil, errors.Join(err, d.store.Close())
	}
	return d, nil
}

// assemble creates the parts that use the store.
func (d *daemon) assemble() error {
	if err := d.makeRuntime(); err != nil {
		return err
	}
	d.makeConsoles()
	shared := controller.NewMetrics(d.metrics)
	if err := d.makeLoops(shared); err != nil {
		return err
	}
	d.makeServer()
	var err error
	d.sftp, err = newSFTP(d)
	return err
}

// makeRuntime creates the parts that act on the host.
func (d *daemon) makeRuntime() (err error) {
	c := d.settings.Current()
	d.egress = newEgressFilter(c, d.store.ID(), d.log)
	guard := d.egress.guard
	if !d.egress.on {
		guard = nil
	}
	d.engine, err = docker.New(docker.Config{Guard: guard, Host: c.Docker.Host, StoreID: d.store.ID(), Network: c.Docker.Network,
		PidsLimit: c.Docker.PidsLimit, NofileLimit: c.Docker.NofileLimit, TmpSize: int64(c.Docker.TmpSize),
		LogMaxSize: int64(c.Docker.LogMaxSize), LogMaxFiles: c.Docker.LogMaxFiles}, d.metrics, d.log)
	if err != nil {
		return err
	}
	allowed := func() []string { return d.settings.Current().Docker.AllowedMounts }
	d.mounts = hostmount.New(filepath.Join(pinnedMounts, d.store.ID()), allowed, d.log)
	archives := archiver.Archiver{Program: archiver.Self, Log: d.log}
	d.volumes, err = volume.New(c.Storage.VolumesPath, volume.Options{UID: c.Storage.UID, GID: c.Storage.GID,
		Limits:    volume.Limits{ExtractBytes: int64(c.Storage.MaxExtractSize)},
		HardLimit: c.Storage.HardLimit == v1.HardLimitAuto, StoreDir: c.Storage.DataPath, Archive: archives.Write})
	if err == nil && c.Storage.HardLimit == v1.HardLimitAuto && d.volumes.HardLimit() != nil {
		d.log.Warn("limits of volumes are only soft on this host", "reason", d.volumes.HardLimit())
	}
	return err
}

// makeConsoles creates the parts that read consoles and measure containers.
func (d *daemon) makeConsoles() {
	dir := filepath.Join(d.settings.Current().Storage.DataPath, "console")
	d.hub = stream.New(dir, stream.Options{Registerer: d.metrics, Log: d.log})
	d.consoles = console.New(d.engine, d.hub, console.Options{Log: d.log})
	d.meter = cgroup.New(d.engine)
	disk := func(id string) (int64, bool) { return diskUsage(d.store, id) }
	d.sampler = stats.NewSampler(d.consoles, d.meter, d.hub, stats.Options{Disk: disk, Log: d.log})
	d.metrics.MustRegister(stats.NewCollector(d.consoles, d.meter))
	d.part("consoles", d.consoles.Run)
	d.part("stats", d.sampler.Run)
	d.part("events", func(ctx context.Context) error { return d.hub.Pump(ctx, d.store) })
	d.part("health", d.watchHealth)
	d.node = newNode(d)
	d.part("disks", d.node.watchDisks)
	d.part("engine", d.node.watchEngine)
}

func (d *daemon) makeServer() {
	d.server = server.New(server.Deps{Store: d.store, Settings: d.settings, Hub: d.hub, Files: d.volumes.Files(), Archives: d.targets,
		Console: input{d.consoles}, Stats: statsAdapter{d.sampler}, Ready: d.unready, Engine: d.engineHealth,
		Registerer: d.metrics, Gatherer: d.metrics, WrongTokens: d.wrong, Log: d.log, Version: release(),
		SpoolDir: d.settings.Current().Storage.VolumesPath, Page: ui.New, Node: d.node.view})
}

// part is what runs until the daemon stops.
type part struct {
	name string
	run  func(context.Context) error
}

// part adds a part. If it ends before its context does, the daemon ends with its error.
func (d *daemon) part(name string, run func(context.Context) error) {
	d.parts = append(d.parts, part{name, run})
}

func (d *daemon) loop(l *controller.Loop) {
	d.part("controller of "+l.Name, func(ctx context.Context) error {
		l.Run(ctx)
		return nil
	})
}
