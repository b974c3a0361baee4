package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	v1 "berth/api/v1"
	"berth/controller/container"
	"berth/runtime"
	"berth/runtime/cgroup"
	"berth/runtime/docker"
	"berth/runtime/volume"
)

// newRoots returns the part that measures what containers write outside their volumes.
func newRoots(d *daemon) *container.Roots {
	m := rootMeter{layers: docker.NewLayers(d.engine), volumes: d.volumes, processes: d.meter,
		limit: func() int64 { return int64(d.settings.Current().Docker.RootLimit) }}
	return &container.Roots{Store: d.store, Measure: m.measure, Limit: m.limit, Log: d.log}
}

// rootMeter measures what one container occupies outside its volume.
type rootMeter struct {
	layers    docker.Layers
	volumes   *volume.Manager
	processes *cgroup.Reader
	limit     func() int64 // docker.root_limit, bytes
}

// measure returns what a container occupies outside its volume. It stops walking a
// tree that exceeds docker.root_limit by more than a quarter. The engine measures the writable layer; other
// files that are not visible from here are not counted.
func (m rootMeter) measure(ctx context.Context, n runtime.Name, volumeID string) (container.RootUsage, error) {
	w, err := m.layers.Writable(ctx, n)
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
		part, err := m.volumes.Measure(ctx, dir, most)
		u.Usage = u.Add(part)
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, file := range w.Files {
		u.Bytes += occupied(file)
	}
	open, err := m.processes.Unlinked(ctx, w.ContainerID, ownDevice(m.volumes.Path(volumeID)))
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

// ownDevice returns the device of a volume with a file system of its own, which counts
// its open unlinked files itself. It returns 0 for other volumes.
func ownDevice(path string) uint64 {
	var place, base syscall.Stat_t
	if syscall.Lstat(path, &place) != nil || syscall.Lstat(filepath.Dir(path), &base) != nil || place.Dev == base.Dev {
		return 0
	}
	return uint64(place.Dev)
}
