package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/controller/backup"
	"berth/controller/console"
	"berth/runtime"
	"berth/runtime/blob"
	"berth/runtime/volume"
	"berth/store"
)

// targets are the places where archives of backups are stored.
type targets struct {
	local *blob.Directory
	s3    *blob.S3 // nil: not configured
}

// newTargets returns the configured targets.
func newTargets(c v1.BackupsConfig) (t targets, err error) {
	t.local = blob.NewDirectory(c.Path)
	if s := c.S3; s.Enabled() {
		t.s3, err = blob.NewS3(blob.S3Options{Endpoint: s.Endpoint, Region: s.Region, Bucket: s.Bucket, Prefix: s.Prefix,
			AccessKey: s.AccessKey, SecretKey: s.SecretKey.Reveal(), PathStyle: s.PathStyle})
	}
	return t, err
}

// Has reports whether a target is configured.
func (t targets) Has(target v1.Target) bool {
	return target == v1.TargetLocal || target == v1.TargetS3 && t.s3 != nil
}

// get returns a target for package backup.
func (t targets) get(target v1.Target) (backup.Target, error) {
	switch {
	case !t.Has(target):
		return nil, v1.Errorf(v1.Unavailable, "The target %s is not configured", target)
	case target == v1.TargetS3:
		return t.s3, nil
	}
	return t.local, nil
}

// freeSpace returns why nothing may be written to a target. A local archive keeps a reserve
// of free space for the store.
func (d *daemon) freeSpace(target v1.Target) error {
	if target != v1.TargetLocal {
		return nil
	}
	c := d.settings.Current()
	space, err := volume.OpenSpace(c.Backups.Path, c.Storage.DataPath)
	if err != nil {
		return err
	}
	return space.Check()
}

var errArchiveMissing = &v1.Error{Code: v1.BackupNotFound, Message: "Archive of the backup not found"}

// presigned is how long a URL of an archive in S3 is valid.
const presigned = 5 * time.Minute

// Fetch returns the file of a local archive, or a URL of an archive in S3.
func (t targets) Fetch(ctx context.Context, target v1.Target, key, name string) (*os.File, string, error) {
	if !t.Has(target) {
		return nil, "", v1.Errorf(v1.Unavailable, "The target %s is not configured", target)
	}
	if target == v1.TargetS3 {
		url, err := t.s3.Presign(ctx, key, name, presigned)
		return nil, url, err
	}
	content, _, err := t.local.Open(ctx, key, 0)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, "", errArchiveMissing
	}
	if err != nil {
		return nil, "", err
	}
	file, is := content.(*os.File)
	if !is {
		return nil, "", errors.Join(fmt.Errorf("archive %s is not a file", key), content.Close())
	}
	return file, "", nil
}

// archives are the archives of volumes for package backup.
type archives struct {
	volume.Snapshots
	manager *volume.Manager
}

// consoles reaches the consoles of servers for package backup.
type consoles struct{ d *daemon }

// Running reports whether the engine runs the server of a container.
func (c consoles) Running(ctx context.Context, id string) (bool, error) {
	s, err := c.d.engine.Inspect(ctx, runtime.Name{ID: id, Role: runtime.Server})
	if errors.Is(err, runtime.ErrNotFound) {
		return false, nil
	}
	return s.Running, err
}

// Send sends a command to a server.
func (c consoles) Send(ctx context.Context, id, command string) error {
	return c.d.consoles.Input(ctx, id, []byte(command))
}

// Await waits for a line of a server.
func (c consoles) Await(ctx context.Context, id, pattern string, since time.Time) error {
	return console.Await(ctx, c.d.hub, id, pattern, since)
}

// mountedBy returns a function that returns the internal_id of a container of this store
// that mounts a volume, or with running of one that also runs; empty if the engine has none.
func (d *daemon) mountedBy(running bool) func(ctx context.Context, volumeID string) (string, error) {
	return func(ctx context.Context, volumeID string) (string, error) {
		found, err := d.engine.List(ctx)
		for _, f := range found {
			if !slices.Contains(f.Mounts, d.volumes.Path(volumeID)) {
				continue
			}
			if !running {
				return f.Name.ID, nil
			}
			s, err := d.engine.Inspect(ctx, f.Name)
			if err != nil && !errors.Is(err, runtime.ErrNotFound) {
				return "", err
			}
			if s.Running {
				return f.Name.ID, nil
			}
		}
		return "", err
	}
}

// restoreStore replaces the store of a data directory by a backup.
func restoreStore(dataPath string, f *os.File) (kept string, err error) {
	unix.Umask(0o077) // as the daemon's: the store holds hashes of tokens
	return store.Restore(filepath.Join(dataPath, "store"), f)
}
