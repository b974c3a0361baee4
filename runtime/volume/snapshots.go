package volume

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
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
	bounds, err := boundsOf(vol.root, vol.quota.Limit())
	if err != nil {
		return v1.Snapshot{}, err
	}
	return backup.Write(ctx, vol.root, w, backup.Options{
		Ignore:    backup.NewIgnore(opt.Ignore),
		NameBytes: s.m.opt.Limits.NameBytes,
		Bounds:    bounds,
		Progress:  progressOf(opt.Progress, s.m.Used(id).Bytes),
		Written:   opt.Written,
	})
}

// bytesSlack is what a backup may have beside its limit and a quarter of it, for files that are
// replaced while it reads a volume.
const bytesSlack = 64 << 20

// apparentFactor is how many times larger than its limit a volume may be with the holes of its
// files, and with a block for each of its hard links, which no limit counts.
const apparentFactor = 10

// matchingTime is how long a backup may compare names with patterns: a million files of a game with the most
// patterns take 25 s, unless the names and the patterns are made to take long.
const matchingTime = 5 * time.Minute

// boundsOf returns the bounds of a backup. The limit of a volume without one is the size of
// its file system.
func boundsOf(dir *os.Root, limit int64) (b backup.Bounds, err error) {
	if limit == 0 {
		f, err := dir.Open(root)
		if err != nil {
			return b, err
		}
		defer f.Close()
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
			return b, os.NewSyscallError("statfs", err)
		}
		limit = int64(st.Blocks) * int64(st.Bsize)
	}
	return backup.Bounds{Bytes: limit + limit/4 + bytesSlack, Apparent: apparentFactor*limit + 2*bytesSlack, Matching: matchingTime}, nil
}

// progressOf converts a function that receives an estimate too. total grows with what
// exceeds it.
func progressOf(notify func(bytes, total int64), total int64) func(bytes int64) {
	if notify == nil {
		return nil
	}
	return func(bytes int64) { notify(bytes, max(bytes, total)) }
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
