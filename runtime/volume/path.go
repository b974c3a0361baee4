package volume

import (
	"path"
	"strings"

	v1 "berth/api/v1"
)

// root is the path of a volume's root folder.
const root = "."

// clean applies the path rules and removes "." components and double slashes.
func clean(p string) (string, error) {
	if err := v1.CheckPath(p); err != nil {
		return "", err
	}
	return cleanResolved(p)
}

// cleanResolved is clean with the rules of v1.CheckResolved.
func cleanResolved(p string) (string, error) {
	if err := v1.CheckResolved(p); err != nil {
		return "", err
	}
	return path.Clean(p), nil
}

// cleanEntry is clean for paths that must not be the root folder.
func cleanEntry(p string) (string, error) {
	p, err := clean(p)
	return p, notRoot(p, err)
}

// cleanResolvedEntry is cleanResolved for paths that must not be the root folder.
func cleanResolvedEntry(p string) (string, error) {
	p, err := cleanResolved(p)
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
