package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"berth/runtime/volume/walk"
)

// Merge adds to the folder name of parent, which Extract filled, the entries of old
// that the archive lacks. An entry of the archive wins, also over one of another type.
// On the same file system the entries become hard links of those in old, so that both
// trees are complete and no content is copied; elsewhere they are copied. hidden
// selects entries of old's root folder that are left out. Nothing in old is changed,
// and nobody else may change it meanwhile.
func Merge(ctx context.Context, old, parent *walk.Dir, name string, hidden func(name string) bool, opt ExtractOptions) error {
	t, err := newTree(parent, name, opt)
	if err != nil {
		return err
	}
	defer t.close()
	m := merger{tree: t, ctxErr: ctx.Err, copied: map[inode]string{}}
	if t.dirs[0], err = m.kept(t.at.Dir()); err != nil {
		return err
	}
	if m.link, err = sameDevice(old, t.at.Dir()); err != nil {
		return err
	}
	w := walk.Walker{CtxErr: ctx.Err, Visit: m.visit, OnLeave: m.leave,
		Skip: func(top bool, name string) bool { return top && hidden(name) }}
	if err := w.Walk(old, "", 0); err != nil {
		return err
	}
	return t.leaveAll()
}

// merger adds a tree to another one.
type merger struct {
	*tree
	ctxErr func() error
	link   bool             // both trees are on the same file system
	copied map[inode]string // paths of copies of files that have several links
}

func sameDevice(a, b *walk.Dir) (bool, error) {
	x, err := a.File().Stat()
	if err != nil {
		return false, err
	}
	y, err := b.File().Stat()
	if err != nil {
		return false, err
	}
	return device(x) == device(y), nil
}

func device(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Dev }

// kept returns the attributes that an extracted folder has, and keeps.
func (m *merger) kept(d *walk.Dir) (attributes, error) {
	info, err := d.File().Stat()
	if err != nil {
		return attributes{}, err
	}
	return newEntry("", folder, info).attributes(), nil
}

// visit adds an entry of the old tree, or enters the folder of the same name. It
// returns fs.SkipDir for a folder that the archive replaces.
func (m *merger) visit(it walk.Entry) error {
	there, err := m.at.Dir().Lstat(it.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m.addOld(it)
	case err != nil:
		return err
	case !it.Info.IsDir():
		return nil
	case !there.IsDir():
		return fs.SkipDir
	}
	return m.down(it.Name, newEntry("", folder, there).attributes())
}

// leave leaves folders of the tree until the depth below its root is depth.
func (m *merger) leave(depth int) (err error) {
	for len(m.dirs) > depth+1 && err == nil {
		err = m.tree.leave()
	}
	return err
}

// addOld adds an entry of the old tree.
func (m *merger) addOld(it walk.Entry) error {
	if it.Info.IsDir() {
		if err := m.opt.reserve(block); err != nil {
			return err
		}
		return m.folder(m.at.Dir(), it.Name, newEntry("", folder, it.Info).attributes())
	}
	if m.link {
		return walk.Link(it.Dir, it.Name, m.at.Dir(), it.Name)
	}
	return m.copyOld(it)
}

// copyOld copies an entry of the old tree that is not a folder.
func (m *merger) copyOld(it walk.Entry) error {
	st := it.Info.Sys().(*syscall.Stat_t)
	id := inode{st.Dev, st.Ino}
	if to := m.copied[id]; to != "" {
		return m.hardLink(m.at.Dir(), it.Name, &entry{path: it.Path(), target: to})
	}
	if st.Nlink > 1 && it.Info.Mode().IsRegular() {
		m.copied[id] = it.Path()
	}
	switch it.Info.Mode().Type() {
	case 0:
		return m.copyOldFile(it)
	case fs.ModeSymlink:
		target, err := it.Dir.Readlink(it.Name)
		if err != nil {
			return err
		}
		e := newEntry(it.Path(), symlink, it.Info)
		e.target = target
		return m.add(e)
	}
	if err := m.opt.reserve(block); err != nil {
		return err
	}
	if err := walk.Mknod(m.at.Dir(), it.Name, st.Mode, st.Rdev); err != nil {
		return err
	}
	return m.finish(m.at.Dir(), it.Name, newEntry("", file, it.Info).attributes())
}

func (m *merger) copyOldFile(it walk.Entry) error {
	f, err := it.Dir.OpenRegular(it.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c := newContent(f, info)
	e := newEntry(it.Path(), file, info)
	e.size, e.sparse, e.data = info.Size(), c.sparse, onDisk(c.parts)
	return m.file(e, c.parts, &partReader{ctxErr: m.ctxErr, content: c, parts: c.parts})
}

// partReader reads the extents of a file one after another.
type partReader struct {
	ctxErr  func() error
	content *content
	parts   []extent
	off     int64 // in the first of parts
}

func (r *partReader) Read(p []byte) (int, error) {
	if err := r.ctxErr(); err != nil {
		return 0, err
	}
	for r.off == r.parts[0].n {
		r.parts, r.off = r.parts[1:], 0
	}
	first := r.parts[0]
	n := r.content.read(p[:min(int64(len(p)), first.n-r.off)], first.off+r.off)
	r.off += int64(n)
	if r.content.failed != nil {
		return n, r.content.failed
	}
	return n, nil
}
