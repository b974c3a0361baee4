package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/controller/console"
	"berth/controller/container"
	"berth/controller/stats"
	"berth/runtime"
	"berth/runtime/cgroup"
	"berth/runtime/docker"
	"berth/runtime/volume"
	"berth/store"
)

// diskUsage returns the size of a container's volume, as last measured.
func (d *daemon) diskUsage(id string) (bytes int64, known bool) {
	tx := d.store.Read()
	c, err := store.Containers.Get(tx, id)
	if err != nil {
		return 0, false
	}
	v, err := store.Volumes.Get(tx, c.Spec.VolumeID)
	return v.Status.Size, err == nil
}

// input adapts the consoles to the interface of package server.
type input struct{ consoles *console.Manager }

// Send writes to a running container's standard input.
func (i input) Send(ctx context.Context, id string, data []byte) error {
	return refusal(i.consoles.Input(ctx, id, data))
}

// Resize changes the size of a running container's terminal.
func (i input) Resize(ctx context.Context, id string, columns, rows uint) error {
	return refusal(i.consoles.Resize(ctx, id, columns, rows))
}

// refusal returns the client's error for an error of the engine.
func refusal(err error) error {
	switch {
	case errors.Is(err, runtime.ErrNotRunning), errors.Is(err, runtime.ErrNotFound):
		return v1.ErrNotRunning
	case errors.Is(err, runtime.ErrInputFull):
		return v1.ErrInputFull
	case errors.Is(err, runtime.ErrUnavailable), errors.Is(err, runtime.ErrLost), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", v1.ErrEngineUnavailable, err)
	}
	return err
}

// statsAdapter adapts the sampler to the interface of package server.
type statsAdapter struct{ sampler *stats.Sampler }

// Stats measures a running container.
func (s statsAdapter) Stats(ctx context.Context, id string) (v1.Stats, error) {
	sample, err := s.sampler.Sample(ctx, id)
	return sample, refusal(err)
}

// Samples measures the running ones of some containers.
func (s statsAdapter) Samples(ctx context.Context, ids []string) map[string]v1.Stats {
	return s.sampler.Samples(ctx, ids)
}

// registryAuth returns the configured credentials for a registry.
func (d *daemon) registryAuth(host string) runtime.Auth {
	r, ok := d.settings.Current().Docker.Registries[host]
	if !ok {
		return runtime.Auth{}
	}
	return runtime.Auth{Host: v1.CanonicalRegistry(host), Username: r.Username, Password: r.Password.Reveal()}
}

// pullAuth returns the credentials of a registry for one of its images. An image of another registry is
// pulled without: none but its own may see them.
func (d *daemon) pullAuth(registry, image string) runtime.Auth {
	if !intent.FromRegistry(image, registry) {
		return runtime.Auth{}
	}
	return d.registryAuth(registry)
}

// bootID returns the id of the host's boot. If it is empty, no start of berth counts
// as a boot: that of a cluster's machine ends no container of another.
func (d *daemon) bootID() string {
	if d.settings.Current().Engine == v1.EngineKubernetes {
		return ""
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// isOwn reports whether an address is one of this host. If the addresses cannot be
// read, every address is.
func isOwn(to netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	for _, one := range own {
		if p, bad := netip.ParsePrefix(one.String()); bad == nil && p.Addr().Unmap() == to.Unmap().WithZone("") {
			return true
		}
	}
	return err != nil
}

// newRoots returns the part that measures what containers write outside their volumes.
func (d *daemon) newRoots(engine *docker.Engine, processes *cgroup.Reader) *container.Roots {
	m := rootMeter{engine: engine, volumes: func() *volume.Manager { return d.volumes }, processes: processes,
		limit: func() int64 { return int64(d.settings.Current().Docker.RootLimit) }}
	return &container.Roots{Store: d.store, Measure: m.measure, Limit: m.limit, Period: d.resync(), Log: d.log, Disk: func() int64 {
		dirs := []string{d.settings.Current().Storage.VolumesPath}
		if e := d.node.engine.Load(); e != nil {
			dirs = append(dirs, e.Root)
		}
		return usedOf(dirs...)
	}}
}

// usedOf returns the used bytes of the file systems of some directories.
func usedOf(dirs ...string) (bytes int64) {
	seen := map[syscall.Fsid]bool{}
	for _, dir := range dirs {
		var st syscall.Statfs_t
		if syscall.Statfs(dir, &st) != nil || seen[st.Fsid] {
			continue
		}
		seen[st.Fsid] = true
		bytes += int64(st.Blocks-st.Bfree) * st.Bsize
	}
	return bytes
}

// rootMeter measures what one container occupies outside its volume.
type rootMeter struct {
	engine    *docker.Engine
	volumes   func() *volume.Manager // made after the engine
	processes *cgroup.Reader
	limit     func() int64 // docker.root_limit, bytes
}

// measure returns what a container occupies outside its volume. It stops walking a
// tree that exceeds docker.root_limit by more than a quarter. The engine measures the writable layer; other
// files that are not visible from here are not counted.
//
// The places of a container that runs never change: the engine is asked for them once. Those of the last measurement are those
// of n if their container still runs. A layer that only the engine sees is measured by it each time.
func (m rootMeter) measure(ctx context.Context, n runtime.Name, w runtime.Writable) (container.RootUsage, error) {
	var errs []error
	if w.Name != n || !w.Local || !m.processes.Runs(w.ContainerID) {
		var err error
		if w, err = m.engine.Writable(ctx, n); err != nil {
			return container.RootUsage{ContainerID: w.ContainerID, Usage: v1.Usage{Bytes: w.Size}}, err
		}
	}
	u := container.RootUsage{ContainerID: w.ContainerID, Places: w, Usage: v1.Usage{Bytes: w.Size}}
	most := m.limit()
	if most > 0 {
		most += most/4 + 1
	}
	for _, dir := range w.Dirs {
		part, err := m.volumes().Measure(ctx, dir, most)
		u.Usage = u.Add(part)
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, file := range w.Files {
		u.Bytes += occupied(file)
	}
	open, err := m.processes.Unlinked(ctx, w.ContainerID)
	u.Bytes += open.Bytes
	u.InFlight, u.Unmeasured = open.InFlight, errors.Is(err, cgroup.ErrTooManyHandles)
	return u, errors.Join(append(errs, err)...)
}

// occupied returns the size of a file on disk, in bytes.
func occupied(path string) int64 {
	var st syscall.Stat_t
	if syscall.Lstat(path, &st) != nil {
		return 0
	}
	return st.Blocks * 512
}

// ownVolume gives a volume to an account. It returns why the account cannot write all of it, with a remedy;
// empty if it can. root can, and an engine may not know the account.
func (d *daemon) ownVolume(ctx context.Context, id string, to container.Accounts) (reason string, err error) {
	if to.UID <= 0 {
		return "", nil
	}
	left, err := d.volumes.Own(ctx, id, volume.Accounts{UID: to.UID, GID: to.GID, Others: to.Others})
	if err != nil || left.Entries == 0 {
		return "", err
	}
	first := "the folder of the volume"
	if left.Path != "" {
		first = v1.ClippedText(v1.EscapePath(left.Path), maxNamedPath)
	}
	reason = fmt.Sprintf("the user %d:%d of the container cannot write %d entries of its volume, the first: %s", to.UID, to.GID,
		left.Entries, first)
	if left.Err != nil {
		return reason + ": its owner could not be changed: " + causeText(left.Err), nil
	}
	return fmt.Sprintf("%s, which belongs to the user %d of another container on this volume: use the same user for both", reason,
		left.UID), nil
}

// maxNamedPath is how many bytes of a path are in a message.
const maxNamedPath = 200

// causeText returns the cause of an error of a file, without its path.
func causeText(err error) string {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}
