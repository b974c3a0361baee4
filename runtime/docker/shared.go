package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"berth/runtime"
	"berth/runtime/keeper"
)

const sharedRemedy = "run berth outside of a container, or give its container that directory of the engine's host at the same path"

// checkShared returns runtime.ErrHost if the engine sees another directory of the volumes than this process: the
// files of the API would not be those of the containers. It looks once for each engine, at the keeper in a
// container that was created: it changes its time, and asks the engine for it.
func (e *Engine) checkShared(ctx context.Context, id string) error {
	if e.shared.Load() {
		return nil
	}
	c, err := e.conn.client().ContainerInspect(ctx, id)
	if err != nil {
		return err
	}
	folder := ""
	for _, m := range c.Mounts {
		if m.Destination == keeper.Dir {
			folder = m.Source
		}
	}
	if folder == "" {
		return nil // an older berth has created it
	}
	now := time.Now()
	own := os.Chtimes(filepath.Join(folder, path.Base(keeper.Path)), now, now)
	found, err := e.conn.client().ContainerStatPath(ctx, id, keeper.Path)
	switch gone := cerrdefs.IsNotFound(err); {
	case gone && errors.Is(own, fs.ErrNotExist):
		return nil // it is missing in both
	case gone, err == nil && errors.Is(own, fs.ErrNotExist), err == nil && own == nil && found.Mtime.Unix() != now.Unix():
		text := fmt.Errorf("the engine sees another directory at %s than berth: %s", e.cfg.Volumes, sharedRemedy)
		return e.unlessLink(ctx, id, classifiedError{runtime.ErrHost, text})
	}
	e.shared.Store(err == nil && own == nil)
	return nil
}

// unlessLink returns a fault of the host, unless the image of a container has a link at the place of the
// keeper's folder: then it is the image's, and others start.
func (e *Engine) unlessLink(ctx context.Context, id string, fault error) error {
	found, err := e.conn.client().ContainerStatPath(ctx, id, keeper.Dir)
	if cerrdefs.IsNotFound(err) || err == nil && found.Mode&fs.ModeSymlink != 0 { // it may lead the mount to the root itself
		return classifiedError{runtime.ErrInvalid, fmt.Errorf("the image has a link at %s, where the first process of its containers is",
			keeper.Dir)}
	}
	return fault
}

// errNoExec is the reason why no container starts: newer engines than 20.10 mount the keeper's folder with the
// options of its file system.
var errNoExec = errors.New("the file system of the volumes is mounted with noexec, where the first process of containers is: mount it " +
	"without noexec")

// unexecutable returns the error of a start: runtime.ErrHost if nothing in the directory of the volumes can be executed.
func (e *Engine) unexecutable(err error) error {
	var volumes unix.Statfs_t
	if classify(err) == runtime.ErrBadCommand && unix.Statfs(e.cfg.Volumes, &volumes) == nil && volumes.Flags&unix.ST_NOEXEC != 0 {
		return classifiedError{runtime.ErrHost, errNoExec}
	}
	return err
}

// unseen returns the error of a creation: runtime.ErrHost if the engine does not find a directory that this
// process finds.
func (e *Engine) unseen(s runtime.Spec, err error) error {
	if !errors.Is(err, runtime.ErrMountMissing) {
		return err
	}
	for _, m := range append(slices.Clone(s.Mounts), runtime.Mount{Source: e.cfg.Volumes}) {
		if _, missing := os.Stat(m.Source); missing != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the engine does not see a directory that berth sees: %s: %s", runtime.ErrHost, detail(err), sharedRemedy)
}
