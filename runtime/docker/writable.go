package docker

import (
	"context"
	"fmt"
	"os"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"berth/runtime"
)

// Layers finds where containers write outside their mounts.
type Layers struct{ e *core }

// NewLayers returns the Layers of an engine's containers.
func NewLayers(e *Engine) Layers { return Layers{e.core} }

// Writable returns the places where the container n writes outside its mounts:
// its layer, the volumes that its image declares, and the files that the engine
// mounts at /etc/hosts, /etc/hostname and /etc/resolv.conf. If the layer is no
// directory of this host (a remote engine, the containerd image store), the
// engine walks it and returns its Size, which does not count empty files.
func (l Layers) Writable(ctx context.Context, n runtime.Name) (runtime.Writable, error) {
	c, err := l.e.find(ctx, n)
	if err != nil {
		return runtime.Writable{}, err
	}
	w := runtime.Writable{ContainerID: c.ID}
	for _, path := range []string{c.HostsPath, c.HostnamePath, c.ResolvConfPath} {
		if path != "" {
			w.Files = append(w.Files, path)
		}
	}
	for _, m := range c.Mounts {
		if m.Type == mount.TypeVolume && m.Source != "" {
			w.Dirs = append(w.Dirs, m.Source)
		}
	}
	if upper := c.GraphDriver.Data["UpperDir"]; upper != "" {
		if _, err := os.Stat(upper); err == nil {
			w.Dirs = append(w.Dirs, upper)
			return w, nil
		}
	}
	w.Size, err = l.size(ctx, n, c.ID)
	return w, err
}

// size asks the engine for the size of a container's layer, in bytes.
func (l Layers) size(ctx context.Context, n runtime.Name, id string) (int64, error) {
	var c container.InspectResponse
	err := l.e.calls.do(ctx, opSize, describe(n), func(ctx context.Context) (err error) {
		c, _, err = l.e.conn.client().ContainerInspectWithRaw(ctx, id, true)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case c.ContainerJSONBase == nil || c.SizeRw == nil:
		return 0, fmt.Errorf("size of %s: %w: its answer has no size", describe(n), runtime.ErrUnavailable)
	}
	return *c.SizeRw, nil
}
