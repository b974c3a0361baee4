package container

import (
	"context"
	"errors"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

const reasonMountRefused = "MountRefused"

// createMounted creates a container with its volume and the mounts of its spec.
// The sources are checked now: they may have changed since the client's request.
func createMounted(ctx context.Context, s execution, spec runtime.Spec) (id string, err error) {
	pinned, release, err := s.r.Mounts.Pin(ctx, spec.Name, mounts(s.c.Spec))
	if err != nil {
		return "", err
	}
	defer release()
	spec.Mounts = append(spec.Mounts, pinned...)
	return s.r.Engine.Create(ctx, s.r.withIncarnation(spec))
}

// startMounted starts a container. An engine resolves the sources of mounts at
// each start, so they are checked and pinned at each start too.
func startMounted(ctx context.Context, s execution, n runtime.Name) error {
	_, release, err := s.r.Mounts.Pin(ctx, n, mounts(s.c.Spec))
	if err != nil {
		return err
	}
	defer release()
	return s.r.Engine.Start(ctx, n)
}

// refuseMount records a refused mount as a condition and an event, once, and
// returns the error for the retry.
func refuseMount(s execution, err error) error {
	text := err.Error()
	if s.reported(text) {
		return err
	}
	return errors.Join(err, s.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		setCondition(st, now, v1.Started, v1.False, reasonMountRefused, text)
	}, text))
}
