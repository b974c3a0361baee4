package container

import (
	"context"
	"time"

	"berth/runtime"
)

// Engine is a container engine. Every method is idempotent: it can be called again
// after a crash, and does nothing if its work is already done.
type Engine interface {
	Observer
	Maker
	Driver
}

// Observer reads the state of containers and images. An error does not mean that a
// container is absent, except runtime.ErrNotFound.
type Observer interface {
	Instancer
	Inspect(ctx context.Context, n runtime.Name) (runtime.State, error)
	List(ctx context.Context) ([]runtime.Found, error)
	ImageID(ctx context.Context, ref string) (string, error)
}

// Instancer identifies the engine over a new connection; see runtime/engine.go.
type Instancer interface {
	Instance(ctx context.Context) (string, error)
}

// Maker creates, updates and removes containers.
type Maker interface {
	Create(ctx context.Context, s runtime.Spec) (containerID string, err error)
	Update(ctx context.Context, n runtime.Name, l runtime.Live) error
	Remove(ctx context.Context, n runtime.Name) error
}

// Driver starts and ends containers.
type Driver interface {
	Start(ctx context.Context, n runtime.Name) error
	Signal(ctx context.Context, n runtime.Name, signal string) error
	Kill(ctx context.Context, n runtime.Name) error
	Unpause(ctx context.Context, n runtime.Name) error
}

// Mounts checks and pins the sources of a container's mounts while the engine
// creates or starts it. See package hostmount.
type Mounts interface {
	Pin(ctx context.Context, n runtime.Name, mounts []runtime.Mount) (pinned []runtime.Mount, release func(), err error)
}

// Console follows the output of containers. See package console.
type Console interface {
	Reader
	Drain(ctx context.Context, t runtime.Target) error
	Input(ctx context.Context, id string, data []byte) error
	Forget(ctx context.Context, id string) error
}

// Reader reads the output of runs.
type Reader interface {
	Follow(t runtime.Target)
	Matched(id, containerID string, startedAt time.Time) bool
	OutputComplete(t runtime.Target) bool
}
