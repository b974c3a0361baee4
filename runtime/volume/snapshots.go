package volume

import (
	"context"
	"io"

	v1 "berth/api/v1"
	"berth/runtime/volume/snapshot"
)

// Snapshots writes volumes to archives and restores them. It is safe for concurrent
// use.
type Snapshots struct{ m *Manager }

// Snapshots returns the archives of m's volumes.
func (m *Manager) Snapshots() Snapshots { return Snapshots{m} }

// Write writes the volume to w as a tar.zst, while others may change it. A file that
// changes meanwhile never fails the archive. An error of w or of ctx ends it.
func (s Snapshots) Write(ctx context.Context, id string, w io.Writer, opt v1.SnapshotOptions) (v1.Snapshot, error) {
	vol, err := s.m.open(ctx, id)
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
	return snapshot.Write(ctx, top.dir, w, snapshot.Options{
		Ignore:    snapshot.NewIgnore(opt.Ignore),
		Hidden:    isTemp,
		TempDir:   s.m.base,
		NameBytes: s.m.opt.Limits.NameBytes,
		Bounds:    bounds,
		Progress:  progressOf(opt.Progress, s.m.Used(id).Bytes),
	})
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
