package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/controller/backup"
	"berth/controller/console"
	"berth/runtime"
	"berth/runtime/blob"
	"berth/runtime/volume"
	background "berth/runtime/volume/backup"
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

// archives reads the archives of backups for package server, and receives them.
type archives struct {
	targets
	volumes *volume.Manager
	path    string                // of the local ones
	free    func(v1.Target) error // see daemon.freeSpace
}

// CheckSpace returns v1.ErrDiskFull if there is no space for files and archives that arrive.
func (a archives) CheckSpace(files, archives int64) error {
	if archives > 0 {
		if err := os.MkdirAll(a.path, 0o700); err != nil {
			return err
		}
	}
	return a.volumes.CheckSpace(files, a.path, archives)
}

// Arrived returns how many bytes of a local archive are there, and whether these are all.
func (a archives) Arrived(b v1.ArrivalBackup) (stored int64, all bool) {
	if b.Spec.Target != v1.TargetLocal {
		return 0, false
	}
	content, size, err := a.local.Open(context.Background(), v1.ArchiveKey(b.BackupID), 0)
	if err != nil {
		return a.local.Stored(v1.ArchiveKey(b.BackupID)), false
	}
	content.Close()
	return size, size == b.Status.Size
}

// Receive stores the archive of a backup from an offset on, as files of a volume are received, or finds it in the bucket.
func (a archives) Receive(ctx context.Context, b v1.ArrivalBackup, offset int64, archive io.Reader) error {
	want := v1.ArchiveOf(b.Status)
	if b.Spec.Target == v1.TargetS3 {
		return a.find(ctx, b.BackupID, want.Size)
	}
	part := blob.Part{Key: v1.ArchiveKey(b.BackupID), Offset: offset, Size: want.Size, Checksum: want.Checksum}
	err := background.WithPriority(v1.LowPriority, func() error { return a.local.PutPart(ctx, part, freeReader{archive, a.free}) })
	switch {
	case errors.Is(err, blob.ErrOther):
		return v1.Errorf(v1.InvalidArchive, "The archive of backup %s is not the one that was announced", b.BackupID)
	case errors.Is(err, blob.ErrNoPart): // the source asks again
		return v1.Errorf(v1.Unavailable, "Backup %s: the stored part of its archive does not end at byte %d", b.BackupID, offset)
	}
	return err
}

// freeReader reads while there is free space for local archives.
type freeReader struct {
	io.Reader
	free func(v1.Target) error
}

// Read implements io.Reader.
func (r freeReader) Read(p []byte) (int, error) {
	if err := r.free(v1.TargetLocal); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// findTime bounds how long the bucket may take.
const findTime = 30 * time.Second

// find looks for an archive in the bucket. Its checksum is verified when it is restored.
func (a archives) find(ctx context.Context, id string, size int64) error {
	if a.s3 == nil {
		return errArchiveMissing
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	content, n, err := a.s3.Open(ctx, v1.ArchiveKey(id), 0)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return errArchiveMissing
	case err != nil:
		return v1.Errorf(v1.Unavailable, "The archives in S3 cannot be read: %s", v1.MessageText(err.Error()))
	}
	content.Close()
	if n != size {
		return v1.Errorf(v1.InvalidArchive, "The archive of backup %s in S3 has %d bytes instead of %d", id, n, size)
	}
	return nil
}

// movedArchives are the local archives for package transfer.
type movedArchives struct{ *blob.Directory }

// Send implements transfer.Archives.
func (m movedArchives) Send(ctx context.Context, a v1.ArrivalBackup, offset int64, w io.Writer) error {
	content, size, err := m.Open(ctx, v1.ArchiveKey(a.BackupID), offset)
	if errors.Is(err, blob.ErrNotFound) {
		return errArchiveMissing
	}
	if err != nil {
		return err
	}
	defer content.Close()
	if size != a.Status.Size {
		return v1.Errorf(v1.InvalidArchive, "The archive of backup %s has %d bytes instead of %d", a.BackupID, size, a.Status.Size)
	}
	return background.WithPriority(v1.LowPriority, func() error {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{content}, make([]byte, copyBytes))
		return err
	})
}

// copyBytes is the size of the buffer of an archive that is sent.
const copyBytes = 256 << 10

// List returns the entries of a folder of a backup.
func (a archives) List(ctx context.Context, b v1.Backup, folder string) ([]v1.FileEntry, error) {
	t, err := a.get(b.Spec.Target)
	if err != nil {
		return nil, err
	}
	content, _, err := t.Open(ctx, v1.ArchiveKey(b.Meta.ID), 0)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, errArchiveMissing
	}
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return a.volumes.ListArchive(ctx, content, v1.ArchiveOf(b.Status), folder)
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

// checkMaker returns why a token may not access a volume any more.
func (d *daemon) checkMaker(tx *store.Tx, token, id string) error {
	p, err := auth.Find(tx, d.settings.Current().Authorization, token)
	if err != nil {
		return err
	}
	return p.CheckVolume(tx, id)
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
