package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"berth/runtime"
)

// Meanings that stay inside this package.
var (
	errConflict   = errors.New("name is in use")
	errNoNetwork  = errors.New("network not found")
	errNotRunning = errors.New("container is not running already")
	errNotPaused  = errors.New("container is not paused")
)

// texts is what the engine's messages mean, where nothing but text tells. The
// first that matches decides. Those that quote what a client chose come first,
// so that no command can pass for another error.
//
// An OCI runtime fails for many reasons that pass: a cgroup that is busy, a
// timeout, a runc that was killed. Only what never passes is a verdict.
var texts = []reading{
	{"bind source path does not exist", runtime.ErrMountMissing},
	{"unable to find user", runtime.ErrInvalid},
	{"unable to find group", runtime.ErrInvalid},
	{"uids and gids must be in range", runtime.ErrInvalid},
	{`oci runtime*exec: "*": executable file not found`, runtime.ErrBadCommand},
	{`oci runtime*exec: "*": permission denied`, runtime.ErrBadCommand},
	{`oci runtime*exec: "*": is a directory`, runtime.ErrBadCommand},
	{`oci runtime*exec: "*": no such file or directory`, runtime.ErrBadCommand},
	{`oci runtime*exec: "*": exec format error`, runtime.ErrBadCommand},
	{"cannot allocate memory", nil}, // of the host: the next try may succeed
	{"no space left on device", nil},
	{"resource temporarily unavailable", nil},
	{"too many open files", nil},
	{"oci runtime*container init: mkdir *: no such file or directory", runtime.ErrInvalid}, // a workdir in /proc
	{"oci runtime*chdir to cwd ", runtime.ErrInvalid},
	{"oci runtime*error mounting *not a directory", runtime.ErrInvalid}, // a directory over a file
	{"oci runtime*error mounting *inside /proc", runtime.ErrInvalid},
	{"oci runtime*error mounting *proc-safety", runtime.ErrInvalid},
	{"oci runtime*unable to set memory limit to * (current usage", runtime.ErrInvalid}, // runc itself needs more
	{"oci runtime", nil},
	{"cannot mkdir: ", runtime.ErrInvalid}, // a workdir that is a file
	{"lstat *: not a directory", runtime.ErrInvalid},
	{"no such image", runtime.ErrImageNotFound},
	{"no such container", runtime.ErrNotFound},
	{"port is already allocated", runtime.ErrPortTaken},
	{"address already in use", runtime.ErrPortTaken},
	{"cannot assign requested address", runtime.ErrPortTaken}, // the host has no such address now
	{"cannot remove a running container", runtime.ErrRunning},
	{"container is running: stop the container", runtime.ErrRunning},
	{"is not paused", errNotPaused},
	{"is not running", errNotRunning},
	{"is already in use by container", errConflict},
	{"invalid reference format", runtime.ErrInvalid},
	{"invalid signal", runtime.ErrInvalid},
	{"minimum memory limit", runtime.ErrInvalid},
	{"range of cpus is", runtime.ErrInvalid},
	{"requested cpus are not available", runtime.ErrInvalid},
	{"is too new. maximum supported api version", errVersion},
	{"is too old. minimum supported api version", errVersion},
}

// classify returns what an error of Docker's client means, or nil if nothing
// is known. It is the only place that reads the engine's texts.
//
// "not found" is believed only in the engine's own words: a proxy that answers
// 404 to everything must not look like a host without containers.
func classify(err error) error {
	var m meaning
	switch {
	case err == nil:
		return nil
	case errors.As(err, &m):
		return m.means
	case errors.Is(err, context.DeadlineExceeded), client.IsErrConnectionFailed(err),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return runtime.ErrUnavailable
	}
	text := strings.ToLower(err.Error())
	for _, t := range texts {
		if t.matches(text) {
			return t.means
		}
	}
	switch {
	case cerrdefs.IsNotFound(err) && strings.Contains(text, "network "):
		return errNoNetwork
	case cerrdefs.IsConflict(err) && strings.Contains(text, "conflict"):
		return errConflict
	case cerrdefs.IsInvalidArgument(err):
		return runtime.ErrInvalid
	}
	return nil
}

// explain names the call that failed and what its error means.
func explain(ctx context.Context, op operation, what string, err error) error {
	switch means := classify(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s %s: %w", op.name, what, ctx.Err())
	case means == nil, errors.Is(err, means):
		return fmt.Errorf("%s %s: %w", op.name, what, said{err})
	default:
		return fmt.Errorf("%s %s: %w: %s", op.name, what, means, detail(err))
	}
}

// said is an error of the engine's in its own words alone.
type said struct{ error }

func (s said) Error() string { return detail(s.error) }
func (s said) Unwrap() error { return s.error }

// detail is the engine's own message without what every message carries.
func detail(err error) string {
	text := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	if _, after, ok := strings.Cut(text, "driver failed programming external connectivity on endpoint "); ok {
		if _, reason, ok := strings.Cut(after, "): "); ok {
			return reason
		}
	}
	return text
}
