package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"berth/runtime"
)

// createPauses are the pauses before the attempts of Create. While the engine
// creates or removes a container, its name is taken although an inspect does not
// find it.
var createPauses = []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second}

// Create creates a container and does not start it. It adopts a container of the
// same name and spec hash, which an earlier call created whose answer was lost.
// It first removes a container with another hash, or returns ErrRunning if that
// runs.
func (e *Engine) Create(ctx context.Context, s runtime.Spec) (string, error) {
	if err := e.net.ensure(ctx); err != nil {
		return "", err
	}
	s, err := e.withImage(ctx, s)
	if err != nil {
		return "", err
	}
	for _, pause := range createPauses {
		if err := runtime.Sleep(ctx, pause); err != nil {
			return "", err
		}
		id, err := e.create(ctx, s)
		switch {
		case errors.Is(err, errNoNetwork):
			err = e.net.recreate(ctx)
		case errors.Is(err, errConflict):
			id, err = e.resolveConflict(ctx, s)
		}
		if err == nil && id != "" {
			e.ids.of.Store(s.Name, id)
			err = e.complete(ctx, s, id)
		}
		if err != nil {
			return "", err
		}
		if id != "" {
			return id, nil
		}
	}
	return "", fmt.Errorf("create %s: the engine reports that the name is in use, and finds no container of that name", s.Name)
}

// configuration returns Docker's configuration of a container whose Command is complete.
func (e *Engine) configuration(ctx context.Context, s runtime.Spec) (*container.Config, *container.HostConfig, error) {
	if !s.Placement.IsZero() {
		return nil, nil, fmt.Errorf("%w: the engine docker lacks %s", runtime.ErrInvalid, runtime.CanPlace)
	}
	cfg, err := e.config(ctx)
	if err != nil {
		return nil, nil, err
	}
	if cfg.keeper, err = e.keeper.Folder(e.cfg.Keeper, e.cfg.Volumes); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", runtime.ErrHost, err)
	}
	config, host := build(cfg, s)
	return config, host, nil
}

// withImage returns s with what it takes from the image: a Command in place of none, or after the image's
// entrypoint, and a Workdir in place of none.
func (e *Engine) withImage(ctx context.Context, s runtime.Spec) (runtime.Spec, error) {
	if len(s.Command) > 0 && !s.Entrypoint && s.Workdir != "" {
		return s, nil
	}
	var entrypoint, command []string
	var workdir string
	err := e.calls.do(ctx, opImage, s.Image, func(ctx context.Context) error {
		image, err := e.conn.client().ImageInspect(ctx, s.Image)
		if err == nil && image.Config != nil {
			entrypoint, command, workdir = image.Config.Entrypoint, image.Config.Cmd, image.Config.WorkingDir
		}
		return err
	})
	if err != nil {
		return s, err
	}
	if len(s.Command) == 0 {
		s.Command, s.Entrypoint = command, true
	}
	if s.Entrypoint {
		s.Command, s.Entrypoint = slices.Concat(entrypoint, s.Command), false
	}
	if len(s.Command) == 0 {
		return s, fmt.Errorf("%w: the image %s has no command of its own, and the spec has no startup_command", runtime.ErrInvalid, s.Image)
	}
	s.Workdir, err = s.WorkdirWith(workdir)
	return s, err
}

func (e *Engine) create(ctx context.Context, s runtime.Spec) (id string, err error) {
	config, host, err := e.configuration(ctx, s)
	if err != nil {
		return "", err
	}
	err = e.calls.do(ctx, opCreate, s.Name.String(), func(ctx context.Context) error {
		made, err := e.conn.client().ContainerCreate(ctx, config, host, nil, nil, engineName(e.cfg.StoreID, s.Name))
		if err == nil && made.ID == "" {
			err = fmt.Errorf("%w: its answer has no container id", runtime.ErrUnavailable)
		}
		e.warn(s.Name, made)
		id = made.ID
		return err
	})
	return id, e.unseen(s, err)
}

func (e *Engine) warn(n runtime.Name, made container.CreateResponse) {
	for _, w := range made.Warnings {
		e.log.Warn("the engine created a container with a warning", "container", n.ID, "role", n.Role, "warning", w)
	}
}

// resolveConflict handles the container that has the name of s. It returns the id of a
// container to adopt. It returns no id after it has removed a container of
// another spec hash, so that the name is free. It fails if the container is of
// another store.
func (e *Engine) resolveConflict(ctx context.Context, s runtime.Spec) (id string, err error) {
	name := engineName(e.cfg.StoreID, s.Name)
	c, err := e.inspect(ctx, s.Name, name)
	switch {
	case errors.Is(err, errNotOurs):
		return "", fmt.Errorf("create %s: %w: %s", s.Name, runtime.ErrUnmanaged, name)
	case errors.Is(err, runtime.ErrNotFound):
		return "", nil // removed since, or not created yet
	case err != nil:
		return "", err
	case c.Config.Labels[labelSpec] == s.SpecHash:
		return c.ID, nil
	case c.State.Running:
		return "", fmt.Errorf("create %s: a container of another spec has its name: %w", s.Name, runtime.ErrRunning)
	}
	return "", e.Remove(ctx, s.Name)
}

// Probe returns the error with which the engine would refuse to create a container, such as
// runtime.ErrInvalid. It creates the container in a role of its own, whose names are no
// container's, and removes it.
func (e *Engine) Probe(ctx context.Context, s runtime.Spec) error {
	if err := e.net.ensure(ctx); err != nil {
		return err
	}
	s, err := e.withImage(ctx, s)
	if err != nil {
		return err
	}
	config, host, err := e.configuration(ctx, s)
	if err != nil {
		return err
	}
	config.Labels = map[string]string{labelStore: e.cfg.StoreID, labelRole: string(probeRole)}
	name := engineName(e.cfg.StoreID, runtime.Name{ID: s.Name.ID, Role: probeRole})
	return e.unseen(s, e.calls.do(ctx, opCreate, s.Name.String(), func(ctx context.Context) error {
		made, err := e.conn.client().ContainerCreate(ctx, config, host, nil, nil, name)
		if errors.Is(classify(err), errConflict) { // of a call whose answer was lost
			err = errors.Join(e.removeProbe(ctx, name), fmt.Errorf("%w: a probe was left over", runtime.ErrUnavailable))
		}
		if err != nil {
			return err
		}
		return errors.Join(e.checkWorkdir(ctx, s, made.ID), e.removeProbe(ctx, made.ID))
	}))
}

// probeRole is in the names and labels of the containers of Probe.
const probeRole runtime.Role = "probe"

func (e *Engine) removeProbe(ctx context.Context, ref string) error {
	return e.conn.client().ContainerRemove(ctx, ref, container.RemoveOptions{RemoveVolumes: true})
}

// complete does what remains to be done after a container was created. A container whose
// working directory is refused, or whose files are not those of berth, is removed.
func (e *Engine) complete(ctx context.Context, s runtime.Spec, id string) error {
	err := e.calls.do(ctx, opCreate, s.Name.String(), func(ctx context.Context) error {
		if err := e.checkShared(ctx, id); err != nil {
			return err
		}
		return e.checkWorkdir(ctx, s, id)
	})
	if errors.Is(err, runtime.ErrInvalid) || errors.Is(err, runtime.ErrHost) {
		return errors.Join(err, e.Remove(ctx, s.Name))
	}
	if err != nil {
		return err
	}
	return e.identify(ctx, s, id)
}

// checkWorkdir returns runtime.ErrInvalid if the working directory of a container is a link
// into a file system of the kernel, whose entries may lead to the host (CVE-2024-21626). Its
// volume is not part of the image.
func (e *Engine) checkWorkdir(ctx context.Context, s runtime.Spec, id string) error {
	if slices.ContainsFunc(s.Mounts, func(m runtime.Mount) bool { return within(s.Workdir, m.Target) }) {
		return nil
	}
	for path := s.Workdir; len(path) > 1; path = filepath.Dir(path) {
		found, err := e.conn.client().ContainerStatPath(ctx, id, path)
		switch {
		case cerrdefs.IsNotFound(err):
			continue
		case err != nil:
			return err
		}
		for _, kernel := range []string{"/proc", "/sys", "/dev"} {
			if found.Mode&fs.ModeSymlink != 0 && within(found.LinkTarget, kernel) {
				return fmt.Errorf("%w: the workdir %s is a link to %s", runtime.ErrInvalid, s.Workdir, found.LinkTarget)
			}
		}
	}
	return nil
}

// within reports whether a path is dir or below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// identify writes /etc/machine-id into a container that was created. An image without /etc
// gets none.
func (e *Engine) identify(ctx context.Context, s runtime.Spec, id string) error {
	if s.MachineID == "" || s.ReadOnlyRoot {
		return nil
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	text := s.MachineID + "\n"
	err := w.WriteHeader(&tar.Header{Name: "machine-id", Mode: 0o444, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	err = e.calls.do(ctx, opCreate, s.Name.String(), func(ctx context.Context) error {
		return e.conn.client().CopyToContainer(ctx, id, "/etc", &archive, container.CopyToContainerOptions{})
	})
	if err != nil && !errors.Is(err, runtime.ErrUnavailable) {
		e.log.Warn("a container has no machine-id of its own", "container", s.Name.ID, "err", err)
		return nil
	}
	return err
}
