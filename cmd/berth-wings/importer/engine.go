package importer

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"berth/api/egg"
)

// killTime bounds how long Docker takes to kill a container.
const killTime = 30 * time.Second

// engine is Docker, for the containers of wings. They are named by the UUID of their server.
type engine struct{ docker *client.Client }

func newEngine() (*engine, error) {
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	return &engine{c}, err
}

// runs reports whether a container of wings runs.
func (e *engine) runs(ctx context.Context, name string) (bool, error) {
	c, err := e.docker.ContainerInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil && c.State.Running, err
}

// stop stops the container of a server as wings does: by its stop command, or a signal. It is killed after a time.
func (e *engine) stop(ctx context.Context, s egg.Server, limit time.Duration) error {
	if running, err := e.runs(ctx, s.UUID); err != nil || !running {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	exited, failed := e.docker.ContainerWait(ctx, s.UUID, container.WaitConditionNotRunning)
	done, err := e.ask(soon, s)
	if err == nil {
		defer done()
		select {
		case <-exited:
			return nil
		case err = <-failed:
		case <-soon.Done():
		}
	}
	if ctx.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err := e.docker.ContainerKill(ctx, s.UUID, "KILL"); err != nil && !errdefs.IsConflict(err) && !errdefs.IsNotFound(err) {
		return err
	}
	return await(ctx, killTime, "the container of wings is not killed", func(ctx context.Context) (bool, error) {
		running, err := e.runs(ctx, s.UUID)
		return !running, err
	})
}

// ask has a server stop. done ends the connection to its console.
func (e *engine) ask(ctx context.Context, s egg.Server) (done func(), err error) {
	spec, _ := s.Spec(egg.Host{}, nil)
	if spec.Stop.Command == "" {
		err = e.docker.ContainerKill(ctx, s.UUID, cmp.Or(spec.Stop.Signal, "SIGTERM"))
		if errdefs.IsConflict(err) {
			err = nil // it has exited
		}
		return func() {}, err
	}
	console, err := e.docker.ContainerAttach(ctx, s.UUID, container.AttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return nil, err
	}
	if deadline, is := ctx.Deadline(); is {
		_ = console.Conn.SetWriteDeadline(deadline)
	}
	if _, err = console.Conn.Write([]byte(spec.Stop.Command + "\n")); err != nil {
		console.Close()
	}
	return console.Close, err
}

// remove removes the container of a server that has stopped. wings makes it anew at each start.
func (e *engine) remove(ctx context.Context, uuid string) error {
	err := e.docker.ContainerRemove(ctx, uuid, container.RemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
