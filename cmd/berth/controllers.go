package main

import (
	"context"
	"io"
	"net/netip"
	goruntime "runtime"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/backup"
	"berth/controller/container"
	"berth/controller/download"
	"berth/controller/image"
	"berth/controller/volume"
	"berth/runtime/fetch"
	"berth/store"
)

// The first delay after a crash, the grace period of an orphan, and the limits of
// concurrent work.
const (
	firstCrashWait = 10 * time.Second
	orphanGrace    = 5 * time.Minute
	pullWorkers    = 3
	mostHeavyCalls = 16 // expensive engine calls at once, at most; see heavyCalls
	volumeWorkers  = 2
)

func (d *daemon) containerLoop(m *controller.Metrics) *controller.Loop {
	container.Register(d.metrics, m, d.store)
	pulls := container.NewPuller(&image.Puller{Engine: d.engine, Store: d.store, Space: d.node.pullSpace}, pullWorkers, d.log)
	d.part("image pulls", pulls.Run)
	configs := container.NewConfigs(d.log)
	d.part("config files", configs.Run)
	heavyCalls := min(mostHeavyCalls, 2*goruntime.NumCPU())
	slots := container.NewSemaphore(heavyCalls)
	c := d.settings.Current().Reconcile
	r := &container.Reconciler{
		Store: d.store, Engine: d.engine, Console: d.consoles, Pulls: pulls,
		OrphanGrace: orphanGrace,
		Semaphore:   slots, Roots: d.roots, Now: time.Now,
		Crash: container.CrashBackOff{BackOff: controller.BackOff{Initial: firstCrashWait, Max: time.Duration(c.Backoff.Max)},
			ResetAfter: time.Duration(c.Backoff.ResetAfter)},
		Warn:   container.Warnings{Start: time.Duration(c.StartWarning), Install: time.Duration(c.InstallWarning)},
		BootID: d.bootID(), Volume: d.volumes.Path, Configure: d.volumes.Files().Configure, Configs: configs, Own: d.ownVolume, Auth: d.registryAuth, Mounts: d.mounts, Metrics: m, Log: d.log,
	}
	return &controller.Loop{
		Name: "container", Reconciler: r, Failed: r.Failed,
		DesiredState: []controller.Source{store.Containers.Source(d.store, store.SpecChanged)}, // first all of them
		Watch: []controller.Source{
			r.Watch(func() { d.listed.Store(true) }),
			d.consoles.Source, d.roots.Source(), container.Volumes(d.store),
			controller.Every(d.resync(), store.Containers.Lister(d.store)),
		},
		Awaited: []controller.Source{pulls.Source, configs.Source, slots.Source},
		Workers: c.Workers + heavyCalls, // so that a kill finds a worker that no start occupies
		BackOff: d.backOff(), Log: d.log, Metrics: m,
	}
}

func (d *daemon) volumeLoop(m *controller.Metrics) *controller.Loop {
	scanner := &volume.Scanner{Store: d.store, Directories: d.volumes, Log: d.log}
	return &controller.Loop{
		Name:         "volume",
		Reconciler:   &volume.Reconciler{Store: d.store, Directories: d.volumes, Log: d.log, Mounted: d.mountedBy(false)},
		DesiredState: []controller.Source{store.Volumes.Source(d.store, store.SpecChanged)},
		Watch:        []controller.Source{volume.Users(d.store), scanner.Source(), d.volumes.Changed, controller.Every(d.resync(), store.Volumes.Lister(d.store))},
		Workers:      volumeWorkers, BackOff: d.backOff(), Log: d.log, Metrics: m,
	}
}

// pullsAtOnce is how many downloads are reconciled at once; the downloads themselves
// run elsewhere.
const pullsAtOnce = 2

// downloadLoop returns the controller of downloads into volumes. They connect to public
// addresses that are not this host's, or to any if files.pull_private is true.
func (d *daemon) downloadLoop(m *controller.Metrics) *controller.Loop {
	client := fetch.New(func(to netip.Addr) bool {
		return d.settings.Current().Files.PullPrivate || v1.IsPublic(to) && !isOwn(to)
	})
	files := d.volumes.Files()
	jobs := download.NewJobs(d.log)
	d.part("downloads", jobs.Run)
	r := &download.Reconciler{Store: d.store, Jobs: jobs, Metrics: download.NewMetrics(d.metrics, jobs), Log: d.log,
		Fetch: func(ctx context.Context, volume, url, path, checksum string, progress func(bytes, total int64)) error {
			return client.Get(ctx, url, strings.TrimPrefix(checksum, "sha256:"), progress, func(content io.Reader) error {
				return files.Write(ctx, volume, path, content)
			})
		}}
	return &controller.Loop{
		Name: "download", Reconciler: r, Workers: pullsAtOnce, BackOff: d.backOff(), Log: d.log, Metrics: m,
		DesiredState: []controller.Source{store.Pulls.Source(d.store, store.SpecChanged, store.Purged)},
		Watch:        []controller.Source{jobs.Source, controller.Every(d.resync(), store.Pulls.Lister(d.store))},
	}
}

// backupLoops returns the controllers of backups, restores and policies.
func (d *daemon) backupLoops(m *controller.Metrics) []*controller.Loop {
	limits := func() v1.BackupsConfig { return d.settings.Current().Backups }
	jobs := backup.NewJobs(func() int { return limits().Concurrency }, d.log)
	d.part("backups", jobs.Run)
	return backup.Loops(backup.Options{
		Store: d.store, Targets: d.targets.get, Archives: archives{d.volumes.Snapshots(), d.volumes}, Console: consoles{d},
		Busy: d.mountedBy(true), Free: d.freeSpace, Limits: limits,
		Jobs: jobs, Metrics: backup.Register(d.metrics, d.store, limits), Log: d.log,
	}, backup.Run{
		Resync:  func(list func() ([]string, error)) controller.Source { return controller.Every(d.resync(), list) },
		BackOff: d.backOff(), Metrics: m,
	})
}
