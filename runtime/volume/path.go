package volume

import (
	"path"
	"strings"

	v1 "berth/api/v1"
)

// root is the path of a volume's root folder.
const root = "."

// clean applies the path rules, and takes "." components and double slashes
// out. A temporary name of ours is nobody's path.
func clean(p string) (string, error) {
	if err := v1.CheckPath(p); err != nil {
		return "", err
	}
	p = path.Clean(p)
	if first, _, _ := strings.Cut(p, "/"); isTemp(first) {
		return "", v1.ErrInvalidPath
	}
	return p, nil
}

// cleanEntry is clean for what cannot be the root folder itself.
func cleanEntry(p string) (string, error) {
	p, err := clean(p)
	if err == nil && p == root {
		err = v1.ErrInvalidPath
	}
	return p, err
}

// split cuts the last component off. Unlike path.Split it gives a folder that
// can be opened; unlike path.Dir it does not resolve "..", which text cannot.
func split(p string) (dir, base string) {
	dir, base = path.Split(strings.TrimRight(p, "/"))
	if dir = strings.TrimRight(dir, "/"); dir == "" {
		dir = root
	}
	return dir, base
}

// within says whether p is folder or something below it.
func within(p, folder string) bool {
	return folder == root || p == folder || strings.HasPrefix(p, folder+"/")
}

// inside says whether a link at name, a path from the volume's root, with this
// target stays in the volume, as far as text can tell.
func inside(name, target string) bool {
	if target == "" || target[0] == '/' {
		return false
	}
	p := path.Join(path.Dir(name), target)
	return p != ".." && !strings.HasPrefix(p, "../")
}
