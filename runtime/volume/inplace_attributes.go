package volume

import (
	"context"
	"io/fs"
	"syscall"
	"time"

	v1 "berth/api/v1"
)

// SetAttributes changes the attributes of the file or folder that p leads to. It checks
// all of them before it changes one.
func (n InPlace) SetAttributes(ctx context.Context, id, p string, a v1.FileAttributes) error {
	p, err := cleanResolved(p)
	if err != nil {
		return err
	}
	return n.files.withVolume(ctx, id, p, func(vol *openVolume) error {
		info, err := vol.root.Stat(p)
		if err != nil {
			return err
		}
		if err := checkAttributes(p, info, a); err != nil {
			return err
		}
		return setAttributes(vol, p, info, a)
	})
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

func setAttributes(vol *openVolume, p string, info fs.FileInfo, a v1.FileAttributes) error {
	if a.Size != nil && *a.Size != info.Size() {
		if err := resize(vol, p, *a.Size); err != nil {
			return err
		}
	}
	if a.Mode != nil && *a.Mode == a.Mode.Perm() && *a.Mode != info.Mode().Perm() {
		if err := vol.root.Chmod(p, *a.Mode); err != nil {
			return err
		}
	}
	if a.Accessed == nil && a.Edited == nil {
		return nil
	}
	var accessed, edited time.Time // zero: unchanged
	if a.Accessed != nil {
		accessed = *a.Accessed
	}
	if a.Edited != nil {
		edited = *a.Edited
	}
	return vol.root.Chtimes(p, accessed, edited)
}

// resize sets the size of a regular file. Growth counts against the limit, although it
// occupies nothing until it is written.
func resize(vol *openVolume, p string, size int64) error {
	h, err := openExisting(vol, p, v1.OpenMode{Write: true})
	if err != nil {
		return err
	}
	defer h.Close()
	if err := vol.quota.Fits(max(0, size-h.base)); err != nil {
		return err
	}
	return h.file.Truncate(size)
}
