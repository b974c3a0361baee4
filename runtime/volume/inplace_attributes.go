package volume

import (
	"context"
	"io/fs"
	"os"
	"syscall"
	"time"

	v1 "berth/api/v1"
)

// SetAttributes changes the attributes of the file or folder that p leads to, and reports
// whether they were others before. It checks all of them before it changes one.
func (n InPlace) SetAttributes(ctx context.Context, id, p string, a v1.FileAttributes) (changed bool, err error) {
	p, err = clean(p)
	if err != nil {
		return false, err
	}
	err = n.files.withVolume(ctx, id, p, func(vol *openVolume) error {
		dir, base, err := vol.resolve(p)
		if err != nil {
			return err
		}
		defer dir.close()
		found, err := dir.find(base)
		if err != nil {
			return err
		}
		defer found.Close()
		changed, err = setAttributes(vol, found, p, a)
		return err
	})
	return changed, err
}

// setAttributes changes the attributes of the file or folder of a handle, whose path is p.
func setAttributes(vol *openVolume, f *os.File, p string, a v1.FileAttributes) (changed bool, err error) {
	info, err := f.Stat()
	if err == nil {
		err = checkAttributes(p, info, a)
	}
	if err != nil {
		return false, err
	}
	if a.Size != nil && *a.Size != info.Size() {
		if err := resize(vol, f, info, *a.Size); err != nil {
			return false, err
		}
		changed = true
	}
	if a.Mode != nil && *a.Mode == a.Mode.Perm() && *a.Mode != info.Mode().Perm() {
		if err := os.Chmod(self(f), *a.Mode); err != nil {
			return changed, err
		}
		changed = true
	}
	if a.Accessed != nil || a.Edited != nil {
		if err := os.Chtimes(self(f), timeOf(a.Accessed), timeOf(a.Edited)); err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}

// timeOf returns the zero time for nil, which changes nothing.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
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

// resize sets the size of a regular file, which info describes. Growth must fit in the limit,
// although it occupies nothing until it is written.
func resize(vol *openVolume, f *os.File, info fs.FileInfo, size int64) error {
	if err := vol.quota.Fits(max(0, size-max(info.Size(), diskBytes(info)))); err != nil {
		return err
	}
	if err := os.Truncate(self(f), size); err != nil {
		return err
	}
	if after, err := f.Stat(); err == nil {
		vol.quota.Add(diskBytes(after) - diskBytes(info))
	}
	return nil
}
