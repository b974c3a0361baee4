package volume

import (
	"io/fs"
	"path"
	"strings"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// root is the path of a volume's root folder.
const root = "."

// parse returns the path that a client named as text, see v1.ParsePath, without "." components and
// double slashes. Whether two dots may stand in a name is checked by the caller.
func parse(text string) (string, error) {
	p, err := v1.ParsePath(text, v1.DotsInNames)
	if err != nil {
		return "", err
	}
	return path.Clean(p), nil
}

// parseEntry is parse for paths that must not be the root folder.
func parseEntry(text string) (string, error) {
	p, err := parse(text)
	return p, notRoot(p, err)
}

// clean is parse for a path of any bytes, as package v1's CheckPath allows it.
func clean(p string) (string, error) {
	if err := v1.CheckPath(p); err != nil {
		return "", err
	}
	return path.Clean(p), nil
}

// cleanEntry is clean for paths that must not be the root folder.
func cleanEntry(p string) (string, error) {
	p, err := clean(p)
	return p, notRoot(p, err)
}

func notRoot(p string, err error) error {
	if err == nil && p == root {
		return v1.ErrInvalidPath
	}
	return err
}

// split separates the last component. Unlike path.Split it returns a folder that
// can be opened; unlike path.Dir it does not resolve "..", because the folder
// before it may be a link.
func split(p string) (dir, base string) {
	dir, base = path.Split(strings.TrimRight(p, "/"))
	if dir = strings.TrimRight(dir, "/"); dir == "" {
		dir = root
	}
	return dir, base
}

// within reports whether p is folder or below it.
func within(p, folder string) bool {
	return folder == root || p == folder || strings.HasPrefix(p, folder+"/")
}

// follow resolves links at the end of p and returns the path of the content, so
// that replacing the content keeps the link.
func (vol *Volume) follow(p string) (string, error) {
	for range 40 {
		info, err := vol.root.Lstat(p)
		if fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR) {
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
		dir, _ := split(p)
		if p = dir + "/" + target; len(p) > v1.MaxPath {
			return "", syscall.ELOOP // as for too many links: no name in p is too long
		}
	}
	return "", syscall.ELOOP
}

// resolve opens the folder of what p leads to, and returns the name in it.
func (vol *Volume) resolve(p string) (dir *fsys.Folder, base string, err error) {
	if p, err = vol.follow(p); err != nil {
		return nil, "", err
	}
	up, base := split(p)
	dir, err = vol.root.OpenFolder(up)
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
