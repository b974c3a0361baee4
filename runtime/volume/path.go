package volume

import (
	"path"
	"strings"

	v1 "berth/api/v1"
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
