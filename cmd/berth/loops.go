package main

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/container"
	"berth/controller/event"
	"berth/controller/port"
	"berth/controller/remote"
	"berth/controller/token"
	"berth/controller/volume"
	"berth/runtime"
	"berth/runtime/docker"
	"berth/runtime/firewall"
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

// makeLoops creates the controllers.
func (d *daemon) makeLoops(m *controller.Metrics) error {
	rules, err := firewall.New(d.settings.Current().Firewall.Backend, d.store.ID(), d.log)
	if err != nil {
		return err
	}
	d.part("watchdog", supervised{d.store, &d.health, d.log}.feedWatchdog)
	d.part("egress filter", func(ctx context.Context) error { return d.egress.keep(ctx, d.engine.Bridge, d.resync()) })
	d.loop(d.containerLoop(m))
	d.loop(d.volumeLoop(m))
	d.loop(downloadLoop(d, m))
	d.loop(port.New(port.Options{Store: d.store, Firewall: rules, Resync: d.resync(), BackOff: d.backOff(), Log: d.log, Metrics: m}))
	d.metrics.MustRegister(port.NewCollector(d.store), volume.NewCollector(d.store), newNodeCollector(d))
	d.loop(token.New(d.store, d.settings, d.log, m))
	d.loop(event.New(d.store, d.settings.Current, d.log, m))
	if err := makeBackups(d, m); err != nil {
		return err
	}
	return d.makeRemote()
}

// makeRemote creates the sender of transitions to the panel. It always runs, and sends
// while remote.enabled is true.
func (d *daemon) makeRemote() error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("hostname: %w", err)
	}
	sender, err := remote.New(remote.Options{Store: d.store, Settings: d.settings.Current, Hostname: host,
		Version: release(), Registerer: d.metrics, Log: d.log})
	if err != nil {
		return err
	}
	d.part("remote", sender.Run)
	return nil
}

func (d *daemon) containerLoop(m *controller.Metrics) *controller.Loop {
	container.Register(d.metrics, m, d.store)
	pulls := container.NewPuller(d.engine, pullWorkers, d.log)
	d.part("image pulls", pulls.Run)
	heavyCalls := min(mostHeavyCalls, 2*goruntime.NumCPU())
	slots := container.NewSemaphore(heavyCalls)
	c := d.settings.Current().Reconcile
	roots := newRoots(d)
	r := &container.Reconciler{
		Store: d.store, Engine: d.engine, Console: d.consoles, Pulls: pulls,
		OrphanGrace: orphanGrace,
		Semaphore:   slots, Roots: roots, Now: time.Now,
		Crash: container.CrashBackOff{Initial: firstCrashWait, Max: time.Duration(c.Backoff.Max),
			ResetAfter: time.Duration(c.Backoff.ResetAfter)},
		Warn:   container.Warnings{Start: time.Duration(c.StartWarning), Install: time.Duration(c.InstallWarning)},
		BootID: bootID(), Volume: d.volumes.Path, Configure: d.volumes.Files().Configure, Auth: d.registryAuth, Mounts: d.mounts, Metrics: m, Log: d.log,
	}
	return &controller.Loop{
		Name: "container", Reconciler: r, Failed: r.Failed,
		DesiredState: []controller.Source{store.Changes(store.Containers, d.store, store.SpecChanged)},
		Watch: []controller.Source{
			controller.List(store.Containers.Lister(d.store)), // at the start; later requests overtake these
			r.Watch(func() { d.listed.Store(true) }),
			d.consoles.Source, roots.Source(), container.Restores(d.store), container.Volumes(d.store),
			controller.Every(d.resync(), store.Containers.Lister(d.store)),
		},
		Awaited: []controller.Source{pulls.Source, slots.Source},
		Workers: c.Workers + heavyCalls, // so that a kill finds a worker that no start occupies
		BackOff: d.backOff(), Log: d.log, Metrics: m,
	}
}

func (d *daemon) volumeLoop(m *controller.Metrics) *controller.Loop {
	scanner := &volume.Scanner{Store: d.store, Directories: d.volumes, Log: d.log}
	return &controller.Loop{
		Name:         "volume",
		Reconciler:   &volume.Reconciler{Store: d.store, Directories: d.volumes, Log: d.log, Mounted: mountedBy(d.engine, d.volumes.Path)},
		DesiredState: []controller.Source{store.Volumes.Source(d.store, store.SpecChanged)},
		Watch:        []controller.Source{volume.Users(d.store), scanner.Source(), d.volumes.Changed, controller.Every(d.resync(), store.Volumes.Lister(d.store))},
		Workers:      volumeWorkers, BackOff: d.backOff(), Log: d.log, Metrics: m,
	}
}

// mountedBy returns a function that returns the internal_id of a container of
// this store that mounts a volume, running or not; empty if the engine has none.
func mountedBy(e *docker.Engine, path func(volumeID string) string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, volumeID string) (string, error) {
		found, err := e.List(ctx)
		for _, f := range found {
			if slices.Contains(f.Mounts, path(volumeID)) {
				return f.Name.ID, nil
			}
		}
		return "", err
	}
}

func (d *daemon) resync() time.Duration { return time.Duration(d.settings.Current().Reconcile.Resync) }

func (d *daemon) backOff() func() backoff.BackOff {
	b := d.settings.Current().Reconcile.Backoff
	return controller.BackOff(time.Duration(b.Initial), time.Duration(b.Max))
}

// registryAuth returns the configured credentials for a registry.
func (d *daemon) registryAuth(host string) runtime.Auth {
	r, ok := d.settings.Current().Docker.Registries[host]
	if !ok {
		return runtime.Auth{}
	}
	return runtime.Auth{Host: v1.CanonicalRegistry(host), Username: r.Username, Password: r.Password.Reveal()}
}

// bootID returns the id of the host's boot. If it is empty, no start of berth counts
// as a boot.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
