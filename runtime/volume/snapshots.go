package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
	"berth/runtime/volume/fsys"
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
	bounds, err := boundsOf(vol)
	if err != nil {
		return v1.Snapshot{}, err
	}
	return backup.Write(ctx, vol.root.Root, w, backup.Options{
		Ignore:    opt.Ignore,
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
func boundsOf(vol *openVolume) (b backup.Bounds, err error) {
	limit := vol.quota.Limit()
	if limit == 0 {
		st, err := vol.statfs()
		if err != nil {
			return b, err
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
	q := s.m.of(id).quota
	limit, used := q.Limit(), int64(0)
	if mode == v1.RestoreMerge {
		used = q.Used().Bytes
	}
	if limit > 0 && (a.Bytes > limit || used > limit-a.Bytes) {
		return v1.ErrSizeLimit
	}
	return nil
}

// Restore extracts an archive beside the volume's content and replaces the content in
// one step, after it verified the archive. After an error, and after a
// crash, the volume is as it was, or completely restored. Changes through Files are
// refused meanwhile. No container may use the volume.
func (s Snapshots) Restore(ctx context.Context, id string, r io.Reader, a v1.SnapshotArchive, opt v1.RestoreOptions) error {
	if opt.Mode != v1.RestoreReplace && opt.Mode != v1.RestoreMerge {
		return fmt.Errorf("restore mode %q is not supported", opt.Mode)
	}
	done, err := s.m.of(id).restore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := s.Fits(id, a, opt.Mode); err != nil {
		return err
	}
	if err := s.m.Sweep(ctx, id); err != nil { // what a killed restore left takes space
		return err
	}
	vol, err := s.m.open(ctx, id)
	if err != nil {
		return err
	}
	defer vol.close()
	x, err := vol.newTempFor(root)
	if err != nil {
		return err
	}
	if opt.Mode == v1.RestoreReplace {
		x.credit = vol.quota.Used().Bytes
	}
	return refuse(id, (&restore{vol: vol, temp: x, archive: a, opt: opt}).run(ctx, r))
}

// restore is one restore of a volume.
type restore struct {
	vol     *openVolume
	temp    *temp // the new tree, and the old one after commit; run closes it
	archive v1.SnapshotArchive
	opt     v1.RestoreOptions
}

func (x *restore) run(ctx context.Context, r io.Reader) error {
	m, id := x.vol.m, x.vol.id
	if err := m.projects.limit(id, 0); err != nil { // two trees are in the project for a while
		x.temp.close()
		return err
	}
	defer m.limitAgain(id)
	err := x.extract(ctx, r)
	if err == nil {
		err = x.commit()
	}
	if err != nil {
		x.temp.close()
		return err
	}
	m.abandon(id)
	x.vol.close() // the last reader that may be in the old tree
	_ = x.vol.drain(ctx)
	x.temp.close()
	if _, err := m.Scan(ctx, id); err == nil {
		x.vol.quota.Add(0) // Changed reports it
	}
	return nil
}

// limitAgain sets the hard limit of a volume after a restore. If that fails, Check returns the error.
func (m *Manager) limitAgain(id string) {
	m.projects.read(id)
	_ = m.projects.limit(id, m.of(id).quota.Limit())
}

// commit makes the new tree durable and exchanges it with the volume's directory. If it
// fails, the volume is as it was.
func (x *restore) commit() error {
	in := x.temp.in
	base, err := x.vol.m.openBase(x.vol.id)
	if err != nil {
		return err
	}
	defer base.Close()
	if err := unix.Syncfs(int(in.File.Fd())); err != nil {
		return os.NewSyscallError("syncfs", err)
	}
	swap := func() error { return in.RenameTo(x.temp.name, base, x.vol.id, unix.RENAME_EXCHANGE) }
	sync := func() error { return errors.Join(base.Sync(), in.Sync()) }
	switch err := swap(); {
	case fsys.Is(err, syscall.EBUSY, syscall.EXDEV):
		return v1.Errorf(v1.Unavailable, "Volume directory is a mount point, which cannot be replaced")
	case fsys.Is(err, syscall.EINVAL, syscall.ENOSYS):
		return v1.Errorf(v1.Unavailable, "The file system of the volumes cannot exchange directories (renameat2)")
	case err != nil:
		return err
	}
	if err := sync(); err != nil {
		return errors.Join(err, swap(), sync())
	}
	return nil
}

// extract creates the new tree.
func (x *restore) extract(ctx context.Context, r io.Reader) error {
	to, err := x.temp.mkdir()
	if err != nil {
		return err
	}
	defer to.Close()
	m, id := x.vol.m, x.vol.id
	if err := m.projects.add(filepath.Join(m.base, tempDir, id, x.temp.name), id); err != nil {
		return err
	}
	opt := backup.ExtractOptions{Reserve: x.temp.Grow, Progress: progressOf(x.opt.Progress, x.archive.Bytes)}
	if err := backup.Extract(ctx, r, x.archive, to.Root, opt); err != nil {
		return err
	}
	if x.opt.Mode == v1.RestoreMerge {
		info, err := to.File.Stat()
		if err == nil {
			err = x.addMissing(x.vol.root, to, info, 0)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// addMissing adds to a folder of the new tree the entries of the old one that the archive lacks. An
// entry of the archive wins, also over one of another type. The entries become hard links of the old
// ones: both trees are complete, and no content is copied. Then the folder gets the attributes of info:
// new entries change its time.
func (x *restore) addMissing(old, to *fsys.Folder, info fs.FileInfo, level int) error {
	if level > maxDepth {
		return tooDeep(maxDepth)
	}
	err := old.Each(func(name string, here fs.FileInfo, err error) error {
		if err := errors.Join(err, x.vol.ctxErr()); err != nil {
			return err
		}
		there, err := to.Lstat(name)
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case missing && !here.IsDir():
			return old.LinkTo(name, to, name)
		case missing:
			err = errors.Join(x.temp.Grow(blockBytes), to.Mkdir(name, 0o700))
			there = here
		case err == nil && (!here.IsDir() || !there.IsDir()):
			return nil
		}
		if err != nil {
			return err
		}
		from, err := old.Enter(name, here)
		if err != nil {
			return err
		}
		defer from.Close()
		into, err := to.OpenFolder(name)
		if err != nil {
			return err
		}
		defer into.Close()
		return x.addMissing(from, into, there, level+1)
	})
	if err != nil {
		return err
	}
	return ownerOf(info).finishFolder(to, info.Mode()&^fs.ModeType, info.ModTime())
}
