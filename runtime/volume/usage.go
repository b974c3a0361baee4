package volume

import (
	"context"
	"syscall"
)

// The bounds of a scan: handles held, and hard links noted. Limits.Held bounds
// the paths of deep folders.
const (
	scanDepth = 32
	scanLinks = 1 << 20
)

// inode names a file with several hard links.
type inode struct{ dev, ino uint64 }

// scan adds up what a volume occupies on disk.
type scan struct {
	t     *tree
	bytes int64
	links map[inode]bool
	deep  []string // folders to come, from the volume's root
	held  int64    // bytes of their paths
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
	if err := s.later(root); err != nil {
		return 0, err
	}
	for len(s.deep) > 0 {
		last := len(s.deep) - 1
		dir := s.deep[last]
		s.deep = s.deep[:last]
		s.held -= deepHeld + int64(len(dir))
		if err := s.from(dir); err != nil {
			return 0, err
		}
	}
	t.used.measured(s.bytes)
	return s.bytes, nil
}

// deepHeld is what is kept of a deep folder beside its path.
const deepHeld = 32

// later notes a folder to be walked, if there is room for its path: a tenant
// can make very many with very long ones.
func (s *scan) later(dir string) error {
	if s.held += deepHeld + int64(len(dir)); s.held > s.t.m.opt.Limits.Held {
		return errTooDeep
	}
	s.deep = append(s.deep, dir)
	return nil
}

// from walks a part of the tree that is scanDepth deep, and notes what is
// below it.
func (s *scan) from(dir string) error {
	r, err := openFolder(s.t.Root, dir)
	if err != nil {
		return ignoreGone(err)
	}
	defer r.Close()
	w := walker{end: s.t.ctx, depth: scanDepth, visit: s.add, deep: func(it item) error {
		return s.later(dir + "/" + it.path)
	}}
	if dir == root {
		info, err := r.Lstat(root)
		if err != nil {
			return err
		}
		s.bytes += onDisk(info)
	}
	return w.walk(r, "", 0)
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
