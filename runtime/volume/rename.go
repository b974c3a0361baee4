package volume

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"syscall"

	v1 "berth/api/v1"
)

// Rename moves src to dst, which must not exist. It creates dst's parents.
func (f Files) Rename(ctx context.Context, id, src, dst string) error {
	src, err := parseEntry(src)
	if err != nil {
		return err
	}
	dst, err = parseEntry(dst)
	if err != nil {
		return err
	}
	return f.withVolume(ctx, id, dst, func(vol *openVolume) error { return vol.rename(src, dst) })
}

func (vol *openVolume) rename(src, dst string) error {
	info, err := vol.root.Lstat(src)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(info, src, dst, "move"); err != nil {
		return err
	}
	from, err := openFolder(vol.root, path.Dir(src))
	if err != nil {
		return refuse(src, err)
	}
	defer from.close()
	to, base, err := vol.parent(dst)
	if err != nil {
		return err
	}
	defer to.close()
	err = from.renameNew(path.Base(src), to, base)
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(src)
	}
	if errors.Is(err, syscall.EINVAL) { // dst is inside src, through a link
		return intoItself("move")
	}
	if err != nil {
		return err
	}
	return errors.Join(to.sync(), from.sync())
}

func notIntoItself(info fs.FileInfo, src, dst, verb string) error {
	switch {
	case src == dst:
		return exists(dst)
	case info.IsDir() && within(dst, src):
		return intoItself(verb)
	}
	return nil
}

func intoItself(verb string) error {
	return v1.Errorf(v1.InvalidRequest, "Cannot %s a folder into itself", verb)
}
