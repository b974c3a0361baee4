package volume

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
	"berth/runtime/volume/fsys"
)

// Snapshot writes the volume to w as a tar.zst, while others may change it. A file that
// changes meanwhile never fails the archive. An error of w or of ctx ends it.
func (m *Manager) Snapshot(ctx context.Context, id string, w io.Writer, opt v1.SnapshotOptions) (v1.Snapshot, error) {
	vol, err := m.open(ctx, id)
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
		NameBytes: m.opt.Limits.NameBytes,
		Bounds:    bounds,
		Progress:  progressWithHoles(opt.Progress, m.Used(id).Bytes),
		Written:   opt.Written,
	})
}

// bytesSlack is what a backup may have beside its limit and a quarter of it, for files that are
// replaced while it reads a volume.
const bytesSlack = 64 << 20

// apparentFactor is how many times larger than its limit a volume may be with the holes of its
// files, and with a block for each of its hard links, which no limit counts.
const apparentFactor = 10

// holesBound is how many bytes of holes a backup may have: they take no space of a volume, but keep the
// backups of all others waiting.
const holesBound = 64 << 30

// matchingTime is how long a backup or an archive may compare names with patterns: a million files of a game with the most
// patterns take 25 s, unless the names and the patterns are made to take long.
const matchingTime = 5 * time.Minute

// boundsOf returns the bounds of a backup. The limit of a volume without one is the size of
// its file system.
func boundsOf(vol *Volume) (b backup.Bounds, err error) {
	limit := vol.quota.Limit()
	if limit == 0 {
		st, err := vol.statfs()
		if err != nil {
			return b, err
		}
		limit = int64(st.Blocks) * int64(st.Bsize)
	}
	return backup.Bounds{Bytes: limit + limit/4 + bytesSlack, Apparent: apparentFactor*limit + 2*bytesSlack, Holes: holesBound,
		Matching: matchingTime}, nil
}

// progressOf converts a function that receives an estimate too. total grows with what
// exceeds it.
func progressOf(notify func(bytes, total int64), total int64) func(bytes int64) {
	if notify == nil {
		return nil
	}
	return func(bytes int64) { notify(bytes, max(bytes, total)) }
}

// progressWithHoles is progressOf for a backup, which reads the holes of files too.
func progressWithHoles(notify func(bytes, total int64), used int64) backup.Progress {
	if notify == nil {
		return nil
	}
	return func(bytes, holes int64) { notify(bytes, max(bytes, used+holes)) }
}

// Fits returns v1.ErrSizeLimit if the archive cannot be restored into the volume
// because of its limit. A merge needs space for the old content too. How much space some paths need is known
// once they are extracted.
func (m *Manager) Fits(id string, a v1.SnapshotArchive, opt v1.RestoreOptions) error {
	if len(opt.Paths) > 0 {
		return nil
	}
	q := m.of(id).quota
	limit, used := q.Limit(), int64(0)
	if opt.Mode == v1.RestoreMerge {
		used = q.Used().Bytes
	}
	if limit > 0 && (a.Bytes > limit || used > limit-a.Bytes) {
		return v1.ErrSizeLimit
	}
	return nil
}

// Restore extracts an archive beside the volume's content and replaces the content in
// one step, after it verified the archive. After an error, and after a
// crash, the volume is as it was, or completely restored. Changes of its files are
// refused meanwhile. No container may use the volume.
func (m *Manager) Restore(ctx context.Context, id string, r io.Reader, a v1.SnapshotArchive, opt v1.RestoreOptions) error {
	if opt.Mode != v1.RestoreReplace && opt.Mode != v1.RestoreMerge {
		return fmt.Errorf("restore mode %q is not supported", opt.Mode)
	}
	paths, err := pathsOf(opt)
	if err != nil {
		return err
	}
	done, err := m.of(id).restore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := m.Fits(id, a, opt); err != nil {
		return err
	}
	if err := m.Sweep(ctx, id); err != nil { // what a killed restore left takes space
		return err
	}
	vol, err := m.open(ctx, id)
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
	return refuse(id, (&restore{vol: vol, temp: x, archive: a, opt: opt, paths: paths}).run(ctx, r))
}

// restore is one restore of a volume.
type restore struct {
	vol     *Volume
	temp    *temp // the new tree, and the old one after commit; run closes it
	archive v1.SnapshotArchive
	opt     v1.RestoreOptions
	paths   backup.Paths // of opt
}

// pathsOf returns the clean paths that a restore is limited to.
func pathsOf(opt v1.RestoreOptions) (list backup.Paths, err error) {
	if len(opt.Paths) > 0 && opt.Mode != v1.RestoreMerge {
		return nil, errors.New("a restore of some paths merges them")
	}
	for _, text := range opt.Paths {
		p, err := parseEntry(text)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
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
	if x.vol.m.opt.Fixed(x.vol.id) {
		return replaceContent(in, x.temp.name, base, x.vol.id)
	}
	swap := func() error { return x.vol.m.exchange(in, x.temp.name, base, x.vol.id) }
	sync := func() error { return errors.Join(base.Sync(), in.Sync()) }
	err = swap()
	if fsys.Is(err, syscall.EINVAL, syscall.ENOSYS, syscall.ENOTSUP) {
		swap = func() error { return replace(in, x.temp.name, base, x.vol.id) }
		err = swap()
	}
	switch {
	case fsys.Is(err, syscall.EBUSY, syscall.EXDEV):
		return v1.Errorf(v1.Unavailable, "Volume directory is a mount point, which cannot be replaced")
	case err != nil:
		return err
	}
	if err := sync(); err != nil {
		return errors.Join(err, swap(), sync())
	}
	return nil
}

// exchange exchanges a temporary entry with the directory of a volume.
func exchange(in *fsys.Folder, name string, base *fsys.Folder, id string) error {
	return in.RenameTo(name, base, id, unix.RENAME_EXCHANGE)
}

// restoredName is the name of a complete tree that takes the place of its volume's directory on a file system that
// cannot exchange them (NFS, FUSE). While it exists, the directory may be missing.
const restoredName = "restored"

// replace is exchange with two renames. After a kill, completeRestore takes the next one.
func replace(in *fsys.Folder, name string, base *fsys.Folder, id string) error {
	if err := errors.Join(in.RenameTo(name, in, restoredName, 0), in.Sync()); err != nil {
		return err
	}
	if err := base.RenameTo(id, in, name, 0); err != nil {
		return errors.Join(err, in.RenameTo(restoredName, in, name, 0))
	}
	if err := in.RenameTo(restoredName, base, id, 0); err != nil {
		return errors.Join(err, in.RenameTo(name, base, id, 0), in.RenameTo(restoredName, in, name, 0))
	}
	return nil
}

// findRestores completes the killed restores of the volumes that have temporary entries in base. One that cannot be
// completed is tried again when its volume is opened, so that it keeps only this volume from use.
func (m *Manager) findRestores(base string) error {
	temps, err := os.ReadDir(filepath.Join(base, tempDir))
	for _, e := range temps {
		if id := e.Name(); checkID(id) == nil {
			s := m.of(id)
			s.incomplete = true
			_ = m.completeRestore(s, id)
		}
	}
	return fsys.IgnoreMissing(err)
}

// completeRestore gives a volume without a directory the tree that a killed restore had completed. Where the directory
// is still there, the tree is to be removed.
func (m *Manager) completeRestore(s *state, id string) error {
	s.completing.Lock()
	defer s.completing.Unlock()
	if !s.incomplete {
		return nil
	}
	base, err := m.openBase(id)
	if err != nil {
		return err
	}
	defer base.Close()
	if m.opt.Fixed(id) {
		err = completeContent(base, id)
	} else {
		in := path.Join(tempDir, id)
		to := id
		if _, err := base.Lstat(id); err == nil {
			to = path.Join(in, randomName(removedPrefix))
		}
		err = fsys.IgnoreMissing(base.Rename(path.Join(in, restoredName), to))
	}
	if err != nil {
		return fmt.Errorf("volume %s: complete its restore: %w", id, err)
	}
	s.incomplete = false
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
	if err := m.projects.add(filepath.Join(m.baseOf(id), tempDir, id, x.temp.name), id); err != nil {
		return err
	}
	opt := backup.ExtractOptions{Reserve: x.temp.Grow, Progress: progressOf(x.opt.Progress, x.archive.Bytes), Paths: x.paths}
	if err := backup.Extract(ctx, r, x.archive, to.Root, opt); err != nil {
		return err
	}
	if x.opt.Mode == v1.RestoreMerge {
		from := to
		if len(x.paths) > 0 {
			from = x.vol.root
		}
		info, err := from.File.Stat()
		if err == nil {
			err = x.addMissing(x.vol.root, to, info, root)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// addMissing adds to a folder of the new tree the entries of the old one that the archive lacks. An
// entry of the archive wins, also over one of another type; of a folder that is only above a path to restore, the old
// one wins. The entries become hard links of the old ones: both trees are complete, and no content is copied. Then the
// folder, which is at a path, gets the attributes of info: new entries change its time.
func (x *restore) addMissing(old, to *fsys.Folder, info fs.FileInfo, at string) error {
	if at != root && strings.Count(at, "/") >= maxDepth {
		return tooDeep(maxDepth)
	}
	err := old.Each(func(name string, here fs.FileInfo, err error) error {
		if err := errors.Join(err, x.vol.ctxErr()); err != nil {
			return err
		}
		p := path.Join(at, name)
		there, err := to.Lstat(name)
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case missing && !here.IsDir():
			return old.LinkTo(name, to, name)
		case missing:
			there = here
		case err != nil:
			return err
		case x.paths.Above(p):
			if !here.IsDir() {
				return v1.Errorf(v1.FileExists, "Volume has a file where the backup has a folder: %s", v1.EscapePath(p))
			}
			there = here
		case !here.IsDir() || !there.IsDir():
			return nil
		}
		from, err := old.Enter(name, here)
		if err != nil {
			return err
		}
		defer from.Close()
		var into *fsys.Folder
		if missing {
			into, err = x.temp.newFolder(to, name)
		} else {
			into, err = to.OpenFolder(name)
		}
		if err != nil {
			return err
		}
		defer into.Close()
		return x.addMissing(from, into, there, p)
	})
	if err != nil {
		return err
	}
	return finishAs(to, info)
}

// ListArchive returns the entries of the folder p of an archive, as List returns those of a volume. What a link leads to
// is not known, and a hard link of an entry before it has no size.
func (m *Manager) ListArchive(ctx context.Context, r io.Reader, a v1.SnapshotArchive, p string) ([]v1.FileEntry, error) {
	p, err := parse(p)
	if err != nil {
		return nil, err
	}
	l := m.newListing()
	err = backup.List(ctx, r, a, p, func(name string, h *tar.Header) error {
		e := describe(name, h.FileInfo())
		if e.Symlink {
			e.Link, e.Size = v1.EscapePath(h.Linkname), int64(len(h.Linkname))
		}
		return l.add(e)
	})
	return l.sorted(), err
}
