package volume

import (
	"io/fs"
	"path"
	"strings"
	"syscall"

	v1 "berth/api/v1"
)

// follow resolves links at the end of p and returns the path of the content, so
// that replacing the content keeps the link.
func (vol *openVolume) follow(p string) (string, error) {
	for range 40 {
		info, err := vol.root.Lstat(p)
		if is(err, fs.ErrNotExist, syscall.ENOTDIR) {
			return p, nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return p, nil
		}
		target, err := vol.root.Readlink(p)
		if err != nil {
			return "", err
		}
		if target == "" || target[0] == '/' {
			return "", v1.ErrInvalidPath
		}
		if p = path.Dir(p) + "/" + target; len(p) > v1.MaxPath { // not cleaned: the folder may be a link
			return "", syscall.ENAMETOOLONG
		}
	}
	return "", syscall.ELOOP
}

// resolve opens the folder of what p leads to, and returns the name in it.
func (vol *openVolume) resolve(p string) (dir *folder, base string, err error) {
	if p, err = vol.follow(p); err != nil {
		return nil, "", err
	}
	up, base := split(p)
	dir, err = openFolder(vol.root, up)
	return dir, base, err
}

// inside reports whether a link at name, a path from the volume's root, stays in
// the volume if it points to target. It compares text and resolves no links.
func inside(name, target string) bool {
	if target == "" || target[0] == '/' {
		return false
	}
	p := path.Join(path.Dir(name), target)
	return p != ".." && !strings.HasPrefix(p, "../")
}
