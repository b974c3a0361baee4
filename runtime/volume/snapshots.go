package volume

import (
	"context"
	"io"
	"os"

	v1 "berth/api/v1"
	"berth/runtime/volume/snapshot"
	"berth/runtime/volume/walk"
)

// Snapshots writes volumes to archives and restores them. It is safe for concurrent
// use.
type Snapshots struct{ m *Manager }

// Snapshots returns the archives of m's volumes.
func (m *Manager) Snapshots() Snapshots { return Snapshots{m} }

// Write writes the volume to w as a tar.zst, while others may change it. A file that
// changes meanwhile never fails the archive. An error of w or of ctx ends it. An *os.File
// must be empty; it is written without this process where ArchiveFunc does so.
func (s Snapshots) Write(ctx context.Context, id string, w io.Writer, opt v1.SnapshotOptions) (v1.Snapshot, error) {
	vol, err := s.m.open(ctx, id, false)
	if err != nil {
		return v1.Snapshot{}, err
	}
	defer vol.close()
	top, err := vol.top()
	if err != nil {
		return v1.Snapshot{}, err
	}
	defer top.close()
	bounds, err := boundsOf(top.dir, vol.quota.Limit())
	if err != nil {
		return v1.Snapshot{}, err
	}
	job := ArchiveJob{Volume: id, Ignore: opt.Ignore, TempDir: s.m.base, NameBytes: s.m.opt.Limits.NameBytes, Bounds: bounds}
	return s.m.opt.Archive(ctx, top.dir.File(), w, job, ArchiveWatch{progressOf(opt.Progress, s.m.Used(id).Bytes), opt.Written})
}

// ArchiveJob is what the archive of a volume depends on, besides the open root folder. It
// can be sent to another process.
type ArchiveJob struct {
	Volume    string   // its id
	Ignore    []string // patterns in .gitignore syntax
	TempDir   string   // of a file without a name
	NameBytes int64    // bytes of memory for names
	Bounds    snapshot.Bounds
}

// ArchiveWatch observes an archive while it is written. Both functions may be called at
// once, and may be nil.
type ArchiveWatch struct {
	Progress func(bytes int64)   // called with the bytes of files that were read so far
	Written  func(n int64) error // as v1.SnapshotOptions has it
}

// ArchiveFunc writes the tree below the open folder root, which the caller closes, as a
// tar.zst to w, which may be an empty *os.File. An error of w, of ctx or of watch ends it.
type ArchiveFunc func(ctx context.Context, root *os.File, w io.Writer, job ArchiveJob, watch ArchiveWatch) (v1.Snapshot, error)

// WriteArchive is the ArchiveFunc that writes the archive in this process.
func WriteArchive(ctx context.Context, root *os.File, w io.Writer, job ArchiveJob, watch ArchiveWatch) (v1.Snapshot, error) {
	out := newOutput(w, watch.Written)
	got, err := snapshot.Write(ctx, walk.NewDir(root), out, snapshot.Options{
		Ignore:    snapshot.NewIgnore(job.Ignore),
		TempDir:   job.TempDir,
		NameBytes: job.NameBytes,
		Bounds:    job.Bounds,
		Progress:  watch.Progress,
	})
	if err == nil {
		err = out.report()
	}
	got.Size, got.Checksum = out.size, out.checksum()
	return got, err
}

// progressOf converts a function that receives an estimate too. total grows with what
// exceeds it.
func progressOf(notify func(bytes, total int64), total int64) func(bytes int64) {
	if notify == nil {
		return nil
	}
	return func(bytes int64) { notify(bytes, max(bytes, total)) }
}

// Verify reads an archive to its end and compares it with its checksum, its size and
// its manifest. Its error has the code v1.InvalidArchive if they differ.
func (s Snapshots) Verify(ctx context.Context, r io.Reader, a v1.SnapshotArchive) error {
	return snapshot.Verify(ctx, r, a, nil)
}

// Fits returns v1.ErrSizeLimit if the archive cannot be restored into the volume
// because of its limit. A merge needs space for the old content too.
func (s Snapshots) Fits(id string, a v1.SnapshotArchive, mode string) error {
	q := s.m.quota(id)
	limit, used := q.Limit(), int64(0)
	if mode == v1.RestoreMerge {
		used = q.Used().Bytes
	}
	if limit > 0 && (a.Bytes > limit || used > limit-a.Bytes) {
		return v1.ErrSizeLimit
	}
	return nil
}
