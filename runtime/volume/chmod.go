package volume

import (
	"context"
	"io/fs"
	"os"
	"path"

	v1 "berth/api/v1"
)

// Chmod sets the permission bits of p, 0 to 0777. It refuses links, which have no
// mode of their own.
func (f Files) Chmod(ctx context.Context, id, p string, mode fs.FileMode) error {
	p, err := parseEntry(p)
	if err != nil {
		return err
	}
	if mode != mode.Perm() {
		return v1.Errorf(v1.InvalidRequest, "mode: must be between 0 and 0777")
	}
	return f.withVolume(ctx, id, p, func(vol *openVolume) error {
		dir, err := openFolder(vol.root, path.Dir(p))
		if err != nil {
			return err
		}
		defer dir.close()
		return chmod(dir.Root, path.Base(p), mode)
	})
}

func chmod(dir *os.Root, name string, mode fs.FileMode) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return v1.ErrInvalidPath
	}
	return dir.Chmod(name, mode)
}
