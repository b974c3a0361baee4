package volume

import (
	"context"
	"errors"
	"os"
	"syscall"

	v1 "berth/api/v1"
)

// scanLinks is how many hard links a scan remembers. Limits.Held bounds the names
// of folders inside each other.
const scanLinks = 1 << 20

// inode names a file with several hard links.
type inode struct{ dev, ino uint64 }

// scan adds up what a tree occupies on disk.
type scan struct {
	t     *tree
	use   v1.Usage
	most  int64 // bytes after which it ends; 0 is all
	links map[inode]bool
}

// Scan measures what the volume occupies on disk, and sets what is known of its
// use. A volume that has a file system of its own is asked for its free space,
// which shows also what is open and has no name any more. Any other is walked:
// hard links count once, each file and folder a block at least. It reads nothing but
// metadata, and goes on while a tenant changes the tree. The first scan of a
// process, and the one after a removal that was cut off, sweeps the volume before.
func (m *Manager) Scan(ctx context.Context, id string) (v1.Usage, error) {
	t, err := m.open(ctx, id)
	if err != nil {
		return v1.Usage{}, err
	}
	defer t.close()
	if !t.used.isSwept() {
		t.used.setSwept(true) // before it is: what is left behind meanwhile is for the next scan
		if err := m.Sweep(ctx, id); err != nil {
			t.used.setSwept(false)
			return v1.Usage{}, err
		}
	}
	s := scan{t: t, links: map[inode]bool{}}
	if m.images.holds(id) {
		s.use, err = m.images.used(id)
	} else {
		err = s.run()
	}
	if err != nil {
		return v1.Usage{}, err
	}
	t.used.measured(s.use)
	return s.use, nil
}

// Measure adds up what a directory tree of this host occupies on disk, as Scan
// does. It ends early at most bytes, with at least that many, or when there are
// more files than v1.FilesLimit of them.
func (m *Manager) Measure(ctx context.Context, dir string, most int64) (v1.Usage, error) {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return v1.Usage{}, err
	}
	defer r.Close()
	s := scan{t: &tree{Root: r, m: m, ctx: ctx.Err}, most: most, links: map[inode]bool{}}
	if err := s.run(); err != nil && !errors.Is(err, errEnough) {
		return s.use, err
	}
	return s.use, nil
}

// run walks the volume.
func (s *scan) run() error {
	d, err := openDirfd(s.t.Root, root)
	if err != nil {
		return err
	}
	defer d.close()
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	s.use = v1.Usage{Bytes: onDisk(info), Files: 1}
	w := walker{end: s.t.ctx, held: s.t.m.opt.Limits.Held, visit: s.add, deep: func(item) error { return errTooDeep }}
	return w.walk(d, "", 0)
}

func (s *scan) add(it item) error {
	st, ok := it.info.Sys().(*syscall.Stat_t)
	if !ok || it.info.IsDir() || st.Nlink < 2 {
		return s.count(onDisk(it.info))
	}
	id := inode{uint64(st.Dev), st.Ino}
	if s.links[id] {
		return nil
	}
	if len(s.links) < scanLinks {
		s.links[id] = true
	}
	return s.count(inodeBytes(st))
}

// count adds one file or folder of n bytes.
func (s *scan) count(n int64) error {
	s.use.Bytes += n
	s.use.Files++
	if s.most > 0 && (s.use.Bytes > s.most || s.use.Files > v1.FilesLimit(s.most)) {
		return errEnough
	}
	return nil
}
