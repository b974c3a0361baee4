package docker

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/docker/docker/api/types/container"

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
// engine walks it and returns its Size, which does not count empty files. What the last
// inspect of n has shown is used again until an event reports a change of n.
// With an error the result has a ContainerID only if the engine answers other requests.
func (l Layers) Writable(ctx context.Context, n runtime.Name) (runtime.Writable, error) {
	at, known := l.e.places.get(n)
	if !known {
		c, err := l.e.find(ctx, n)
		if err != nil {
			return runtime.Writable{}, err
		}
		at = placeOf(c)
	}
	w := at.Writable
	if at.upper != "" {
		if _, err := os.Stat(at.upper); err == nil {
			w.Dirs = append(w.Dirs, at.upper)
			return w, nil
		}
	}
	size, err := l.size(ctx, n, w.ContainerID)
	w.Size = size
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // the layer takes long, or the engine answers nobody
		if _, dead := l.e.find(context.WithoutCancel(ctx), n); dead != nil {
			return runtime.Writable{}, errors.Join(err, dead)
		}
	}
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
