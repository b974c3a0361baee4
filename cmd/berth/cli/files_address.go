package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"

	"berth/api/client"
	v1 "berth/api/v1"
)

// containerPrefix begins the name of a container that looks like a volume's id.
const containerPrefix = "container/"

// volumeID matches the UUID of a volume and the first 8 characters of it.
var volumeID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{8}$`)

// errLocal is the error of one file of this host.
var errLocal = errors.New("cannot copy")

// address names a file or folder of a volume, such as survival:world/level.dat.
type address struct {
	id     string // as it was given: of a volume or of a container
	path   string // relative to the volume's root; empty: the root
	folder bool   // it ended with a slash or was empty
}

// parseAddress parses "<id>:<path>". The path may begin with a slash.
func parseAddress(text string) (a address, err error) {
	id, rest, found := strings.Cut(text, ":")
	if !found || id == "" {
		return a, fmt.Errorf("%q must be <id>:<path>, such as survival:server.properties", text)
	}
	rest = strings.TrimLeft(rest, "/")
	a = address{id, "", rest == "" || strings.HasSuffix(rest, "/")}
	if rest == "" {
		return a, nil
	}
	if err := v1.CheckPath(rest); err != nil {
		return a, fmt.Errorf("%s: %w", text, err)
	}
	a.path = a.join(rest).path
	return a, nil
}

// parsePath is parseAddress for a path that must not be the root.
func parsePath(text string) (address, error) {
	a, err := parseAddress(text)
	if err == nil && a.path == "" {
		err = fmt.Errorf("%s names the whole volume: name a file or folder in it", text)
	}
	return a, err
}

// String returns the address as a user writes it.
func (a address) String() string { return a.id + ":" + a.path }

// join returns the address of a file below a folder.
func (a address) join(name string) address {
	joined := path.Join(a.path, name)
	if joined == "." {
		joined = ""
	}
	return address{id: a.id, path: joined}
}

// volumeOf returns the volume that an id names: a volume's UUID or its first 8
// characters, else a container, whose volume it is.
func volumeOf(ctx context.Context, d *daemon, id string) (string, error) {
	name, named := strings.CutPrefix(id, containerPrefix)
	if !named && volumeID.MatchString(id) {
		return id, nil
	}
	c, err := d.Containers().Get(ctx, name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", id, err)
	}
	return c.VolumeID, nil
}

// stat returns the entry of a file or folder, which it finds in the list of its parent.
func stat(ctx context.Context, d *daemon, volume string, a address) (v1.FileEntry, error) {
	if a.path == "" {
		return v1.FileEntry{Type: v1.TypeDirectory}, nil
	}
	parent := path.Dir(a.path)
	if parent == "." {
		parent = ""
	}
	list, err := d.Files().List(ctx, volume, parent)
	if err != nil {
		return v1.FileEntry{}, fmt.Errorf("%s: %w", a, err)
	}
	for _, e := range list {
		if e.Name == path.Base(a.path) {
			return e, nil
		}
	}
	missing := &client.Error{Status: http.StatusNotFound, Code: v1.PathNotFound, Message: "Path not found: " + a.path}
	return v1.FileEntry{}, fmt.Errorf("%s: %w", a, missing)
}

// skippable reports whether an error is about one file alone: a folder is copied
// without it.
func skippable(err error) bool {
	switch client.StatusOf(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return !errors.Is(err, v1.ErrVolumeNotFound)
	}
	return errors.Is(err, errLocal)
}
