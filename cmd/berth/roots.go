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
)

// roots measures what containers write outside their volumes.
func (d *daemon) roots() *container.Roots {
	return &container.Roots{Store: d.store, Measure: d.rootUsage, Log: d.log,
		Limit: func() int64 { return int64(d.settings.Current().Docker.RootLimit) }}
}

// rootUsage adds up what a container occupies outside its volume. A tree that is
// over docker.root_limit is not walked to its end. What cannot be seen from here
// is left out, but for the layer: the engine measures that.
func (d *daemon) rootUsage(ctx context.Context, n runtime.Name, volumeID string) (container.RootUsage, error) {
	w, err := d.engine.Writable(ctx, n)
	u := container.RootUsage{ContainerID: w.ContainerID, Usage: v1.Usage{Bytes: w.Size}}
	if err != nil {
		return u, err
	}
	var errs []error
	for _, dir := range w.Dirs {
		part, err := d.volumes.Measure(ctx, dir, int64(d.settings.Current().Docker.RootLimit))
		u.Usage = u.Add(part)
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, file := range w.Files {
		u.Bytes += occupied(file)
	}
	open, err := d.meter.Unlinked(ctx, w.ContainerID, d.ownDevice(volumeID))
	u.Bytes += open
	return u, errors.Join(append(errs, err)...)
}

// occupied is what a single file occupies on disk, in bytes.
func occupied(path string) int64 {
	var st syscall.Stat_t
	if syscall.Lstat(path, &st) != nil {
		return 0
	}
	return st.Blocks * 512
}

// ownDevice is the device of a volume with a file system of its own, which counts
// itself what is open and has no name; else 0.
func (d *daemon) ownDevice(volumeID string) uint64 {
	var place, base syscall.Stat_t
	path := d.volumes.Path(volumeID)
	if syscall.Lstat(path, &place) != nil || syscall.Lstat(filepath.Dir(path), &base) != nil || place.Dev == base.Dev {
		return 0
	}
	return uint64(place.Dev)
}
