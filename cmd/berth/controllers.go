package main

import (
	"context"
	"io"
	"net/netip"
	goruntime "runtime"
	"strings"
	"time"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/backup"
	"berth/controller/container"
	"berth/controller/download"
	"berth/controller/image"
	"berth/controller/schedule"
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

// inspectPeriod is the time between two inspections of a container that nothing happens to: they find what
// no list of the engine shows, such as limits that others changed while the engine's events were lost.
const inspectPeriod = time.Hour

func (d *daemon) containerLoop(m *controller.Metrics) *controller.Loop {
	container.Register(d.metrics, m, d.store)
	pulls := container.NewPuller(&image.Puller{Engine: d.engine, Store: d.store, Space: d.node.pullSpace}, pullWorkers, d.log)
	d.part("image pulls", pulls.Run)
	preparations := container.NewPreparations(d.log)
	d.part("preparations", preparations.Run)
	heavyCalls := min(mostHeavyCalls, 2*goruntime.NumCPU())
	slots := container.NewSemaphore(heavyCalls)
	c := d.settings.Current().Reconcile
	r := &container.Reconciler{
		Options: container.Options{
			Crash: container.CrashBackOff{BackOff: controller.BackOff{Initial: firstCrashWait, Max: time.Duration(c.Backoff.Max)},
				ResetAfter: time.Duration(c.Backoff.ResetAfter)},
			Warn:        container.Warnings{Start: time.Duration(c.StartWarning), Install: time.Duration(c.InstallWarning)},
			OrphanGrace: orphanGrace, BootID: d.bootID(), Now: time.Now,
		},
		Store: d.store, Engine: d.engine, Console: d.consoles, Roots: d.roots, Mounts: d.mounts,
		Volumes: container.HostVolumes{Mount: d.mountOf, Configure: d.volumes.Configure, Own: d.ownVolume},
		Auth:    d.pullAuth, Metrics: m, Log: d.log,
		Pulls: pulls, Preparations: preparations, Semaphore: slots,
	}
	return &controller.Loop{
		Name: "container", Reconciler: r, Failed: r.Failed,
		DesiredState: []controller.Source{store.Containers.Source(d.store, store.SpecChanged)}, // first all of them
		Signals: []controller.Source{
			r.EngineChanges(func() { d.listed.Store(true) }),
			d.consoles.Source, d.roots.Source(), container.Volumes(d.store),
			r.Resync(d.resync()), controller.Every(inspectPeriod, store.Containers.Lister(d.store)),
		},
		Awaited: []controller.Source{pulls.Source, preparations.Source, slots.Source},
		Workers: c.Workers + heavyCalls, // so that a kill finds a worker that no start occupies
		BackOff: d.backOff(), Log: d.log, Metrics: m,
	}
}

func (d *daemon) volumeLoop(m *controller.Metrics) *controller.Loop {
	scanner := &volume.Scanner{Store: d.store, Directories: d.volumes, Period: d.resync(), Log: d.log}
	k := d.settings.Current().Kubernetes
	r := &volume.Reconciler{Store: d.store, Directories: d.volumes, Log: d.log, Mounted: d.mountedBy(false),
		Claims: d.claims, Class: k.VolumeClass, ClaimSize: int64(k.VolumeSize)}
	return &controller.Loop{
		Name:         "volume",
		Reconciler:   r,
		DesiredState: []controller.Source{store.Volumes.Source(d.store, store.SpecChanged)},
		Signals:      []controller.Source{volume.Users(d.store), scanner.Source(), d.volumes.Changed, r.Resync(d.resync())},
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
	jobs := download.NewJobs(d.log)
	d.part("downloads", jobs.Run)
	r := &download.Reconciler{Store: d.store, Jobs: jobs, Metrics: download.NewMetrics(d.metrics, jobs), Log: d.log,
		Fetch: func(ctx context.Context, spec v1.PullSpec, progress func(bytes, total int64)) error {
			return client.Get(ctx, spec.URL, strings.TrimPrefix(spec.Checksum, "sha256:"), progress, func(content io.Reader) error {
				_, err := d.volumes.Write(ctx, spec.VolumeID, spec.Path, content, nil)
				return err
			})
		}}
	return &controller.Loop{
		Name: "download", Reconciler: r, Workers: pullsAtOnce, BackOff: d.backOff(), Log: d.log, Metrics: m,
		DesiredState: []controller.Source{store.Pulls.Source(d.store, store.SpecChanged, store.Purged)},
		Signals:      []controller.Source{jobs.Source, controller.Every(d.resync(), store.Pulls.Lister(d.store))},
	}
}

// scheduleLoop returns the controller of schedules. Their steps request what a client may request.
func (d *daemon) scheduleLoop(m *controller.Metrics) *controller.Loop {
	lines := schedule.NewLines(d.log)
	d.part("lines of schedules", lines.Run)
	return schedule.New(schedule.Options{
		Store: d.store, Began: d.began, Lines: lines, Resync: d.resync(), BackOff: d.backOff(), Loops: m, Log: d.log,
		Metrics: schedule.Register(d.metrics, d.store),
		Power: func(w store.Writer, container, verb string) error {
			return intent.Power(w, container, intent.Verb(verb))
		},
		Backup: func(w store.Writer, id string, spec v1.BackupSpec) error {
			return intent.CreateBackup(w, id, spec, d.settings.Current().Backups)
		},
		Send: func(ctx context.Context, container, line string) error {
			return input{d.consoles}.Send(ctx, container, []byte(line))
		},
	})
}

// backupLoops returns the controllers of backups, restores and policies.
func (d *daemon) backupLoops(m *controller.Metrics) []*controller.Loop {
	limits := func() v1.BackupsConfig { return d.settings.Current().Backups }
	jobs := backup.NewJobs(func() int { return limits().Concurrency }, d.log)
	d.part("backups", jobs.Run)
	return backup.Loops(backup.Options{
		Store: d.store, Targets: d.targets.get, Archives: d.volumes, Console: consoles{d}, Maker: d.checkMaker,
		Busy: d.mountedBy(true), Free: d.freeSpace, Limits: limits,
		Jobs: jobs, Metrics: backup.Register(d.metrics, d.store, limits), Log: d.log,
	}, backup.Run{
		Resync:  func(list func() ([]string, error)) controller.Source { return controller.Every(d.resync(), list) },
		BackOff: d.backOff(), Metrics: m,
	})
}
