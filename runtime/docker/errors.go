package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"berth/runtime"
)

// Classes of errors that only this package uses.
var (
	errConflict     = errors.New("name is in use")
	errNoNetwork    = errors.New("network not found")
	errNetworkTaken = fmt.Errorf("%w: another daemon creates the network", runtime.ErrUnavailable)
	errNotRunning   = errors.New("container is not running already")
	errNotPaused    = errors.New("container is not paused")
)

// texts classifies the engine's messages where the status does not suffice. The
// first rule that matches wins. Messages that quote a client's command come
// first, so that no command can imitate another error.
//
// A version that the engine refuses is that of another engine, which it has replaced: Watch
// negotiates again.
//
// Many failures of an OCI runtime are temporary: a busy cgroup, a timeout, a runc
// that was killed. Only permanent failures have a class here.
var texts = []textRule{
	{"bind source path does not exist", runtime.ErrMountMissing},
	{"unable to find user", runtime.ErrInvalid},
	{"unable to find group", runtime.ErrInvalid},
	{"uids and gids must be in range", runtime.ErrInvalid},
	{`oci runtime*exec: "*": executable file not found`, runtime.ErrBadCommand},
	{`oci runtime*exec: "*": permission denied`, runtime.ErrBadCommand},
	{`oci runtime*exec: "*": is a directory`, runtime.ErrBadCommand},
	{`oci runtime*exec: "*": no such file or directory`, runtime.ErrBadCommand},
	{`oci runtime*exec: "*": exec format error`, runtime.ErrBadCommand},
	{"cannot allocate memory", nil}, // on the host: a retry may succeed
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
	{"was found but *the specified platform", runtime.ErrOtherMachine}, // of the containerd store
	{"no such image", runtime.ErrImageNotFound},
	{"no such container", runtime.ErrNotFound},
	{"port is already allocated", runtime.ErrPortTaken},
	{"address already in use", runtime.ErrPortTaken},
	{"cannot assign requested address", runtime.ErrNoAddress},
	{"cannot remove a running container", runtime.ErrRunning},
	{"container is running: stop the container", runtime.ErrRunning},
	{"is not paused", errNotPaused},
	{"is not running", errNotRunning},
	{"is already in use by container", errConflict},
	{"networks have same bridge name", errNetworkTaken},
	{"network with name * already exists", errNetworkTaken},
	{"invalid reference format", runtime.ErrInvalid},
	{"invalid signal", runtime.ErrInvalid},
	{"minimum memory limit", runtime.ErrInvalid},
	{"range of cpus is", runtime.ErrInvalid},
	{"requested cpus are not available", runtime.ErrInvalid},
	{"is too new. maximum supported api version", runtime.ErrUnavailable},
	{"is too old. minimum supported api version", runtime.ErrUnavailable},
}

// classify returns the class of an error of Docker's client, or nil if it is
// unknown. Only this function and pullError read the engine's texts.
//
// A 404 counts as "not found" only with the engine's own message: a proxy that
// answers 404 to everything must not look like a host without containers.
func classify(err error) error {
	var m classifiedError
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
	if isHostFault(strings.TrimPrefix(text, "error response from daemon: ")) {
		return runtime.ErrHost
	}
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

// explain adds the operation, the object and the class of its error to err.
func explain(ctx context.Context, op operation, what string, err error) error {
	switch means := classify(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case means == nil, errors.Is(err, means):
		err = engineError{err}
	default:
		err = fmt.Errorf("%w: %s", means, detail(err))
	}
	return &runtime.CallError{Call: op.name, Object: what, Err: err}
}

// engineError is an error whose text is the engine's own message.
type engineError struct{ error }

func (s engineError) Error() string { return detail(s.error) }
func (s engineError) Unwrap() error { return s.error }

// detail returns the engine's own message without the prefixes of Docker's client.
func detail(err error) string {
	text := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	if _, after, ok := strings.Cut(text, "driver failed programming external connectivity on endpoint "); ok {
		if _, reason, ok := strings.Cut(after, "): "); ok {
			return reason
		}
	}
	return text
}

// pullTexts classifies the messages of a failed pull, after withoutReference has removed
// the client's text. The first rule that matches wins. Any other message says
// nothing about the image, for example if the registry cannot be reached or its
// name does not resolve.
//
// Docker's own registry answers "repository does not exist or may require
// 'docker login'" also for private repositories; for this caller the image does
// not exist. It reports bad credentials as "incorrect username or password".
var pullTexts = []textRule{
	{"dial tcp", nil},
	{"dial udp", nil},
	{"no basic auth credentials", runtime.ErrDenied}, // the containerd store says "does not exist" too
	{"repository does not exist", runtime.ErrImageNotFound},
	{"manifest unknown", runtime.ErrImageNotFound},
	{"name unknown", runtime.ErrImageNotFound},
	{"repository name not known", runtime.ErrImageNotFound},
	{"no matching manifest", runtime.ErrOtherMachine},
	{"no match for platform", runtime.ErrOtherMachine}, // the text of the containerd store
	{"cannot be used on this platform", runtime.ErrOtherMachine},
	{"failed to resolve reference*: not found", runtime.ErrImageNotFound}, // the text of the containerd store
	{"invalid reference format", runtime.ErrInvalid},
	{"toomanyrequests", nil}, // a quota; a later pull may succeed
	{"unauthorized", runtime.ErrDenied},
	{"incorrect username or password", runtime.ErrDenied},
	{"authentication required", runtime.ErrDenied},
	{"permission denied", nil}, // for a file of the engine
	{"denied", runtime.ErrDenied},
}

// textRule gives a class to messages that contain a pattern. The pattern is in
// lower case, and "*" matches any text. A nil class means an unknown error.
type textRule struct {
	pattern string
	means   error
}

func (r textRule) matches(text string) bool {
	for part := range strings.SplitSeq(r.pattern, "*") {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

func (r textRule) wrap(err error) error {
	if r.means == nil {
		return err
	}
	return classifiedError{r.means, err}
}

// quoted matches the quoted parts of a message, such as the URL of the request.
var quoted = regexp.MustCompile(`"[^"]*"`)

// withoutReference returns a message in lower case without the image's reference, which
// may contain any word.
func withoutReference(text, ref string) string {
	text = quoted.ReplaceAllString(text, "")
	repository, _, _ := strings.Cut(ref, "@")
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		repository = repository[:colon]
	}
	if repository == "" {
		return strings.ToLower(text)
	}
	return strings.ToLower(strings.ReplaceAll(text, repository, ""))
}

// pullError wraps an error of a pull of ref with its class, if the class is known.
func pullError(ref string, err error) error {
	if err == nil {
		return nil
	}
	text := withoutReference(err.Error(), ref)
	if strings.HasPrefix(detail(err), "manifest for ") && strings.Contains(text, "not found") {
		return classifiedError{runtime.ErrImageNotFound, err}
	}
	for _, r := range pullTexts {
		if r.matches(text) {
			return r.wrap(err)
		}
	}
	return err
}

// classifiedError is an error with a known class.
type classifiedError struct{ means, err error }

func (m classifiedError) Error() string   { return fmt.Sprintf("%s: %s", m.means, detail(m.err)) }
func (m classifiedError) Unwrap() []error { return []error{m.means, m.err} }
