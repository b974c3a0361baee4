package volume

import (
	"context"
	"syscall"
)

// The bounds of a scan: handles held, deep folders and hard links noted.
const (
	scanDepth = 32
	scanDeep  = 10_000
	scanPath  = 1 << 20 // bytes of a path
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
}

// Scan measures what the volume occupies on disk, in bytes, by walking it, and
// sets what is known of its use. Hard links count once. It reads nothing but
// metadata, and goes on while a tenant changes the tree. The first scan of a
// process sweeps the volume before.
func (m *Manager) Scan(ctx context.Context, id string) (int64, error) {
	t, err := m.open(ctx, id)
	if err != nil {
		return 0, err
	}
	defer t.close()
	if !t.used.isSwept() {
		if err := m.Sweep(ctx, id); err != nil {
			return 0, err
		}
		t.used.setSwept()
	}
	s := scan{t: t, links: map[inode]bool{}, deep: []string{root}}
	for len(s.deep) > 0 {
		last := len(s.deep) - 1
		dir := s.deep[last]
		s.deep = s.deep[:last]
		if err := s.from(dir); err != nil {
			return 0, err
		}
	}
	t.used.measured(s.bytes)
	return s.bytes, nil
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
		if len(s.deep) >= scanDeep || len(dir) > scanPath {
			return errTooDeep
		}
		s.deep = append(s.deep, dir+"/"+it.path)
		return nil
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
