package volume

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	v1 "berth/api/v1"
)

// SetAttributes changes the attributes of the file or folder that p leads to, and reports
// whether they were others before. It checks all of them before it changes one.
func (n InPlace) SetAttributes(ctx context.Context, id, p string, a v1.FileAttributes) (changed bool, err error) {
	p, err = cleanResolved(p)
	if err != nil {
		return false, err
	}
	err = n.files.withVolume(ctx, id, p, func(vol *openVolume) error {
		info, err := vol.root.Stat(p)
		if err != nil {
			return err
		}
		if err := checkAttributes(p, info, a); err != nil {
			return err
		}
		c := changeOf(info, a)
		changed, err = c.apply(
			func(size int64) error { return resize(vol, p, size) },
			func(mode fs.FileMode) error { return vol.root.Chmod(p, mode) },
			func(accessed, edited time.Time) error { return vol.root.Chtimes(p, accessed, edited) })
		return err
	})
	return changed, err
}

// checkAttributes refuses what no client may set. A mode or an owner that the file has
// already is allowed.
func checkAttributes(p string, info fs.FileInfo, a v1.FileAttributes) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	same := func(want *uint32, have uint32) bool { return want == nil || ok && *want == have }
	switch {
	case !info.Mode().IsRegular() && !info.IsDir(), !same(a.UID, st.Uid), !same(a.GID, st.Gid):
		return v1.ErrInvalidPath
	case a.Mode == nil || *a.Mode == info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky):
	case *a.Mode != a.Mode.Perm() || p == root:
		return v1.ErrInvalidPath
	}
	if a.Size != nil && (*a.Size < 0 || !info.Mode().IsRegular()) {
		return notAFile(p)
	}
	return nil
}

// attributeChange is what a change of attributes changes. A zero field stays as it is.
type attributeChange struct {
	size             *int64
	mode             *fs.FileMode
	accessed, edited time.Time
}

// changeOf returns what a changes of a file.
func changeOf(info fs.FileInfo, a v1.FileAttributes) (c attributeChange) {
	if a.Size != nil && *a.Size != info.Size() {
		c.size = a.Size
	}
	if a.Mode != nil && *a.Mode == a.Mode.Perm() && *a.Mode != info.Mode().Perm() {
		c.mode = a.Mode
	}
	if a.Accessed != nil {
		c.accessed = *a.Accessed
	}
	if a.Edited != nil {
		c.edited = *a.Edited
	}
	return c
}

func (c attributeChange) hasTimes() bool { return !c.accessed.IsZero() || !c.edited.IsZero() }

// apply changes a file by the functions that set its attributes. It reports whether it has changed
// any.
func (c attributeChange) apply(resize func(int64) error, chmod func(fs.FileMode) error, chtimes func(accessed, edited time.Time) error) (changed bool, err error) {
	if c.size != nil {
		err = resize(*c.size)
		changed = err == nil
	}
	if c.mode != nil && err == nil {
		err = chmod(*c.mode)
		changed = changed || err == nil
	}
	if c.hasTimes() && err == nil {
		err = chtimes(c.accessed, c.edited)
		changed = changed || err == nil
	}
	return changed, err
}

// SetAttributes changes the attributes of the open file. It checks all of them before it
// changes one.
func (h *openedFile) SetAttributes(a v1.FileAttributes) (changed bool, err error) {
	done, err := h.change()
	if err != nil {
		return false, err
	}
	defer done()
	info, err := h.file.Stat()
	if err == nil {
		err = checkAttributes(h.path, info, a)
	}
	if err != nil {
		return false, h.refuse(err)
	}
	c := changeOf(info, a)
	changed, err = c.apply(h.resize, h.file.Chmod, func(accessed, edited time.Time) error {
		return os.Chtimes(fmt.Sprint("/proc/self/fd/", h.file.Fd()), accessed, edited)
	})
	return changed, h.refuse(err)
}

// resize sets the size of the file. Growth counts against the limit, although it occupies
// nothing until it is written.
func (h *openedFile) resize(size int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.quota.Fits(max(0, size-h.base)); err != nil {
		return err
	}
	return h.truncate(size)
}

// resize sets the size of a regular file.
func resize(vol *openVolume, p string, size int64) error {
	h, err := openExisting(vol, p, v1.OpenMode{Write: true})
	if err != nil {
		return err
	}
	defer h.Close()
	return h.resize(size)
}
