package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/crypto/ssh"

	"berth/api/limit"
	"berth/api/server"
	"berth/api/sftp"
	"berth/api/stream"
	"berth/api/ui"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/controller"
	"berth/controller/console"
	"berth/controller/container"
	"berth/controller/event"
	"berth/controller/image"
	"berth/controller/port"
	"berth/controller/remote"
	"berth/controller/stats"
	"berth/controller/token"
	"berth/controller/volume"
	"berth/runtime"
	"berth/runtime/firewall"
	"berth/runtime/hostmount"
	hostvolume "berth/runtime/volume"
	"berth/store"
)

// pinnedMounts is the directory below which the mounts of containers are pinned while
// the engine mounts them, one directory for each store.
const pinnedMounts = "/run/berth"

// daemon holds every part of a running berth.
type daemon struct {
	settings *config.Settings
	log      *slog.Logger
	metrics  registry

	store *store.Store
	host
	observers
	targets targets // of backups
	servers

	began  time.Time
	health atomic.Pointer[health] // of the engine; nil: unknown yet
	listed atomic.Bool            // the engine's containers were listed once
	parts  []part
	loops  []part // of the controllers, which use the parts
}

// host acts on the host.
type host struct {
	engine   engine
	meter    stats.Meter              // of the usage of containers
	machines func() []runtime.Machine // of a cluster, as they are watched; nil: it is one host
	claims   volume.Claims            // of a cluster; nil: it is one host
	roots    *container.Roots         // nil: the engine itself bounds what containers write outside their volumes
	volumes  *hostvolume.Manager
	mounts   *hostmount.Pinner
}

// observers are what the daemon knows of containers and of its host without storing it.
type observers struct {
	hub      *stream.Hub
	consoles *console.Manager
	sampler  *stats.Sampler
	node     *node
}

// servers serve clients.
type servers struct {
	wrong   *limit.Rate // wrong tokens, of the API and of SFTP
	server  *server.Server
	sftp    *sftp.Server // nil: not enabled
	hostKey string       // fingerprint of the key of sftp
}

// part is what runs until the daemon stops.
type part struct {
	name string
	run  func(context.Context) error
}

// newDaemon assembles the daemon, from the store to the servers. No part does anything before run.
func newDaemon(s *config.Settings, log *slog.Logger) (_ *daemon, err error) {
	d := &daemon{settings: s, log: log, metrics: registry{prometheus.NewRegistry(), log},
		servers: servers{wrong: limit.NewRate(limit.WrongTokens())}, began: time.Now()}
	c := s.Current()
	shared := controller.NewMetrics(d.metrics)
	d.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	d.store, err = store.Open(filepath.Join(c.Storage.DataPath, "store"), store.Options{Registerer: d.metrics, Log: log})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.store.Close())
		}
	}()
	d.part("store", d.watchStore)

	// These act on the host: the engine with its firewall, and the directories of volumes.
	if err = d.newEngine(); err != nil {
		return nil, err
	}
	allowed := func() []string { return s.Current().Docker.AllowedMounts }
	d.mounts = hostmount.New(filepath.Join(pinnedMounts, d.store.ID()), allowed, log)
	if d.volumes, err = d.newVolumes(); err != nil {
		return nil, err
	}
	rules, err := firewall.New(c.Firewall.Backend, d.store.ID(), log)
	if err != nil {
		return nil, err
	}

	// Consoles, usage, events and the node are observed.
	d.hub = stream.New(filepath.Join(c.Storage.DataPath, "console"), stream.Options{Registerer: d.metrics, Log: log})
	d.consoles = console.New(d.engine, d.hub, console.Options{Log: log})
	d.sampler = stats.NewSampler(d.consoles, d.meter, d.hub, stats.Options{Disk: d.diskUsage, Log: log})
	d.node = newNode(d)
	d.metrics.MustRegister(stats.NewCollector(d.consoles, d.meter, log), port.NewCollector(d.store), volume.NewCollector(d.store))
	d.node.register(d.metrics)
	d.part("consoles", d.consoles.Run)
	d.part("stats", d.sampler.Run)
	d.part("events", func(ctx context.Context) error { return d.hub.Run(ctx, d.store) })
	d.part("health", d.watchHealth)
	d.part("disks", d.node.watchDisks)
	d.part("engine", d.node.watchEngine)
	d.part("kernel", d.watchKernel)
	d.part("watchdog", d.feedWatchdog)

	// The controllers do what the store asks for.
	d.loop(d.containerLoop(shared))
	d.loop(d.volumeLoop(shared))
	d.loop(d.downloadLoop(shared))
	d.loop(port.New(port.Options{Store: d.store, Firewall: rules, Resync: d.resync(), BackOff: d.backOff(), Log: log, Metrics: shared}))
	d.loop(token.New(d.store, s, log, shared))
	d.loop(image.New(d.store, d.engine, func() time.Duration { return time.Duration(s.Current().Docker.ImagesKept) }, log, shared))
	d.loop(event.New(d.store, s.Current, log, shared))
	if d.targets, err = newTargets(c.Backups); err != nil {
		return nil, err
	}
	for _, l := range d.backupLoops(shared) {
		d.loop(l)
	}
	d.loop(d.scheduleLoop(shared))
	for _, l := range d.transferLoops(shared) {
		d.loop(l)
	}
	sender, err := d.newSender()
	if err != nil {
		return nil, err
	}
	d.part("remote", sender.Run)
	return d, d.makeServers(c)
}

// part adds a part. If it ends before its context does, the daemon ends with its error. One that panics begins
// again.
func (d *daemon) part(name string, run func(context.Context) error) {
	d.parts = append(d.parts, part{name, func(ctx context.Context) error { return controller.Persist(ctx, d.log, name, run) }})
}

func (d *daemon) loop(l *controller.Loop) {
	d.loops = append(d.loops, part{"controller of " + l.Name, func(ctx context.Context) error {
		l.Run(ctx)
		return nil
	}})
}

func (d *daemon) newVolumes() (*hostvolume.Manager, error) {
	c := d.settings.Current()
	var bases []string
	for name := range c.Kubernetes.Claims {
		bases = append(bases, c.VolumesIn(name))
	}
	volumes, err := hostvolume.New(c.Storage.VolumesPath, hostvolume.Options{UID: c.Storage.UID, GID: c.Storage.GID,
		Limits:   hostvolume.Limits{ExtractBytes: int64(c.Storage.MaxExtractSize)},
		Reserved: d.reserved, In: d.volumesIn, Bases: bases, Fixed: d.hasClaim,
		StoreDir: c.Storage.DataPath, HardLimit: c.Storage.HardLimit == v1.HardLimitAuto})
	if err == nil && volumes.HardLimitErr() != nil {
		d.log.Info("limits of volumes are soft", "reason", volumes.HardLimitErr())
	}
	return volumes, err
}

// volumesIn returns the directory that holds a volume.
func (d *daemon) volumesIn(id string) string {
	v, _ := store.Volumes.Get(d.store.Read(), id) // an unknown one is removed already
	return d.settings.Current().VolumesIn(v.Spec.Storage)
}

// hasClaim reports whether a volume has a claim of its own.
func (d *daemon) hasClaim(id string) bool {
	v, err := store.Volumes.Get(d.store.Read(), id)
	return err == nil && v.Status.Class != ""
}

// mountOf returns the mount of a volume. Its own claim has its id as its name, and makes its directory.
func (d *daemon) mountOf(id string) runtime.Mount {
	m := runtime.Mount{Source: d.volumes.Path(id)}
	if d.hasClaim(id) {
		m.Claim = id
	}
	return m
}

// newSender returns the sender of transitions to the panel. It always runs, and sends while
// remote.enabled is true.
func (d *daemon) newSender() (*remote.Sender, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("hostname: %w", err)
	}
	return remote.New(remote.Options{Store: d.store, Settings: d.settings.Current, Hostname: host,
		Version: release(), Registerer: d.metrics, Log: d.log})
}

// makeServers creates the servers of the API and, if it is enabled, of SFTP.
func (d *daemon) makeServers(c v1.Config) error {
	d.server = server.New(server.Deps{Store: d.store, Settings: d.settings, Hub: d.hub, Files: d.volumes,
		Archives: archives{d.targets, d.volumes, c.Backups.Path, d.freeSpace}, Trees: d.volumes,
		Console: input{d.consoles}, Stats: statsAdapter{d.sampler}, Ready: d.unready, Engine: d.engineHealth,
		Registerer: d.metrics, Gatherer: d.metrics, WrongTokens: d.wrong, Log: d.log, Version: release(),
		SpoolDir: d.settings.Current().Storage.VolumesPath, Page: ui.New, Node: d.node.view, CheckMount: d.mounts.Check, OwnAddress: isOwn})
	if !c.SFTP.Enabled {
		return nil
	}
	keys, err := sftp.LoadHostKeys(c.SFTP)
	if err != nil {
		return err
	}
	d.hostKey = ssh.FingerprintSHA256(keys[0].PublicKey())
	d.sftp = sftp.New(sftp.Deps{Store: d.store, Settings: d.settings, Files: d.volumes, Registerer: d.metrics,
		WrongTokens: d.wrong, Log: d.log}, keys)
	return nil
}

func (d *daemon) resync() time.Duration { return time.Duration(d.settings.Current().Reconcile.Resync) }

func (d *daemon) backOff() controller.BackOff {
	b := d.settings.Current().Reconcile.Backoff
	return controller.BackOff{Initial: time.Duration(b.Initial), Max: time.Duration(b.Max)}
}
