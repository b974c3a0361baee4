package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

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
	err := d.store.View(func(tx *store.Tx) error {
		c, err := store.Containers.Get(tx, id)
		if err != nil {
			return err
		}
		v, err := store.Volumes.Get(tx, c.Spec.VolumeID)
		bytes = v.Status.Size
		return err
	})
	return bytes, err == nil
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
	return &container.Roots{Store: d.store, Measure: m.measure, Limit: m.limit, Log: d.log}
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
func (m rootMeter) measure(ctx context.Context, n runtime.Name) (container.RootUsage, error) {
	w, err := m.engine.Writable(ctx, n)
	u := container.RootUsage{ContainerID: w.ContainerID, Usage: v1.Usage{Bytes: w.Size}}
	if err != nil {
		return u, err
	}
	var errs []error
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
	u.Bytes += open
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

// ownVolume gives the root of an empty volume to a user. It returns why the user cannot write
// the volume, with a remedy; empty if it can.
func (d *daemon) ownVolume(id string, user runtime.Account) (reason string, err error) {
	root, err := os.OpenFile(d.volumes.Path(id), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer root.Close()
	info, err := root.Stat()
	if err != nil {
		return "", err
	}
	owner, is := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	if !is || user.UID <= 0 || int(owner.Uid) == user.UID && mode&0o200 != 0 || int(owner.Gid) == user.GID && mode&0o020 != 0 || mode&0o002 != 0 {
		return "", nil
	}
	if _, err := root.Readdirnames(1); errors.Is(err, io.EOF) {
		return "", root.Chown(user.UID, user.GID)
	}
	return fmt.Sprintf("the user %d:%d of the container cannot write its volume, which belongs to %d:%d: change the owner of the files, "+
		"or the user of the container", user.UID, user.GID, owner.Uid, owner.Gid), nil
}
