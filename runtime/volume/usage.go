package volume

import (
	"context"
	"syscall"
)

// scanLinks is how many hard links a scan remembers. Limits.Held bounds the names
// of folders inside each other.
const scanLinks = 1 << 20

// inode names a file with several hard links.
type inode struct{ dev, ino uint64 }

// scan adds up what a volume occupies on disk.
type scan struct {
	t     *tree
	bytes int64
	links map[inode]bool
}

// Scan measures what the volume occupies on disk, in bytes, by walking it, and
// sets what is known of its use. Hard links count once. It reads nothing but
// metadata, and goes on while a tenant changes the tree. The first scan of a
// process, and the one after a removal that was cut off, sweeps the volume before.
func (m *Manager) Scan(ctx context.Context, id string) (int64, error) {
	t, err := m.open(ctx, id)
	if err != nil {
		return 0, err
	}
	defer t.close()
	if !t.used.isSwept() {
		t.used.setSwept(true) // before it is: what is left behind meanwhile is for the next scan
		if err := m.Sweep(ctx, id); err != nil {
			t.used.setSwept(false)
			return 0, err
		}
	}
	s := scan{t: t, links: map[inode]bool{}}
	if err := s.run(); err != nil {
		return 0, err
	}
	t.used.measured(s.bytes)
	return s.bytes, nil
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
	s.bytes += onDisk(info)
	w := walker{end: s.t.ctx, held: s.t.m.opt.Limits.Held, visit: s.add, deep: func(item) error { return errTooDeep }}
	return w.walk(d, "", 0)
}

func (s *scan) add(it item) error {
	st, ok := it.info.Sys().(*syscall.Stat_t)
	if !ok || it.info.IsDir() || st.Nlink < 2 {
		s.bytes += onDisk(it.info)
		return nil
	}
	id := inode{uint64(st.Dev), st.Ino}
	if s.links[id] {
		return nil
	}
	if len(s.links) < scanLinks {
		s.links[id] = true
	}
	s.bytes += st.Blocks * 512
	return nil
}
