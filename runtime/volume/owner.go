package volume

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// owner is the user and the group of an entry. A new entry gets that of its folder, and a file that
// replaces another one that of the other.
type owner struct{ uid, gid int }

func ownerOf(info fs.FileInfo) owner {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return owner{-1, -1}
	}
	return owner{int(st.Uid), int(st.Gid)}
}

// owner returns the owner of new entries of the folder.
func (f *folder) owner() (owner, error) {
	info, err := f.file.Stat()
	if err != nil {
		return owner{}, err
	}
	return ownerOf(info), nil
}

// ownerIn returns the owner of new entries of the folder dir, which may be missing.
func (vol *openVolume) ownerIn(dir string) (owner, error) {
	info, err := vol.root.Stat(dir)
	if err == nil && !info.IsDir() || is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		info, err = vol.root.Stat(vol.deepest(dir))
	}
	if err != nil {
		return owner{}, err
	}
	return ownerOf(info), nil
}

// finish sets the mode and the owner of a new file or folder.
func (o owner) finish(f *os.File, mode fs.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if ownerOf(info) != o {
		if err := ignoreDenied(f.Chown(o.uid, o.gid)); err != nil {
			return err
		}
	}
	if info.Mode()&^fs.ModeType != mode { // the umask has changed it, or the folder's setgid
		err = f.Chmod(mode)
	}
	return err
}

// finishLink sets the owner of the new link name.
func (o owner) finishLink(in *folder, name string) error {
	return ignoreDenied(in.Lchown(name, o.uid, o.gid))
}

// ignoreDenied ignores that only root may give a file to another user.
func ignoreDenied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
