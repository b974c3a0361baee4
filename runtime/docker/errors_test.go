package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// answer is an error as the client makes it of a status and a text.
func answer(kind error, text string) error {
	return fmt.Errorf("%w", joined{errors.New("Error response from daemon: " + text), kind})
}

type joined struct{ error, kind error }

func (j joined) Unwrap() []error { return []error{j.error, j.kind} }
func (j joined) Error() string   { return j.error.Error() }

// The texts were collected from Docker 20.10; those of later ones contain the same parts.
func TestClassify(t *testing.T) {
	const endpoint = "driver failed programming external connectivity on endpoint mc (3703229d1f02): "
	for _, c := range []struct {
		kind  error
		text  string
		means error
	}{
		{cerrdefs.ErrNotFound, "No such container: mc", runtime.ErrNotFound},
		{cerrdefs.ErrNotFound, "page not found", nil},
		{cerrdefs.ErrNotFound, "404 page not found", nil},
		{cerrdefs.ErrNotFound, "No such image: nope:1", runtime.ErrImageNotFound},
		{cerrdefs.ErrNotFound, "network berth not found", errNoNetwork},
		{cerrdefs.ErrPermissionDenied, "cannot create network 5b4 (br-1): conflicts with network 7c1 (br-1): networks have same bridge name", errNetworkTaken},
		{cerrdefs.ErrConflict, "network with name berth already exists", errNetworkTaken},
		{cerrdefs.ErrInternal, endpoint + "Bind for 0.0.0.0:25565 failed: port is already allocated", runtime.ErrPortTaken},
		{cerrdefs.ErrInternal, endpoint + "Error starting userland proxy: listen tcp4 127.0.0.1:18998: bind: address already in use", runtime.ErrPortTaken},
		{cerrdefs.ErrInternal, endpoint + "Error starting userland proxy: listen tcp4 192.0.2.1:80: bind: cannot assign requested address", runtime.ErrNoAddress},
		{cerrdefs.ErrInternal, "OCI runtime create failed: unable to start container process: cannot allocate memory", nil},
		{cerrdefs.ErrInternal, "OCI runtime create failed: mkdir /run/runc/x: no space left on device", nil},
		{cerrdefs.ErrInternal, "OCI runtime create failed: fork/exec /proc/self/exe: resource temporarily unavailable", nil},
		{cerrdefs.ErrInternal, "OCI runtime create failed: open /proc/self/fd: too many open files", nil},
		{cerrdefs.ErrInvalidArgument, `failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "nosuch": executable file not found in $PATH: unknown`, runtime.ErrBadCommand},
		{cerrdefs.ErrInvalidArgument, `OCI runtime create failed: exec: "port is already allocated": executable file not found`, runtime.ErrBadCommand},
		{cerrdefs.ErrInvalidArgument, `invalid mount config for type "bind": bind source path does not exist: /x`, runtime.ErrMountMissing},
		{cerrdefs.ErrInvalidArgument, "Minimum memory limit allowed is 6MB", runtime.ErrInvalid},
		{cerrdefs.ErrInvalidArgument, "Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available", runtime.ErrInvalid},
		{cerrdefs.ErrInvalidArgument, "client version 1.51 is too new. Maximum supported API version is 1.41", runtime.ErrUnavailable},
		{cerrdefs.ErrInternal, "unable to find user nouser: no matching entries in passwd file", runtime.ErrInvalid},
		{cerrdefs.ErrConflict, `Conflict. The container name "/x" is already in use by container "abc". You have to remove (or rename) that container to be able to reuse that name.`, errConflict},
		{cerrdefs.ErrConflict, "Cannot kill container: bp3: Container 415d is not running", errNotRunning},
		{cerrdefs.ErrConflict, "You cannot remove a running container 415d. Stop the container before attempting removal or force remove", runtime.ErrRunning},
		{cerrdefs.ErrConflict, "removal of container abc is already in progress", nil},
		{cerrdefs.ErrInternal, "Container 415d is not paused", errNotPaused},
		{cerrdefs.ErrInternal, "something else", nil},
		{context.DeadlineExceeded, "", runtime.ErrUnavailable},
		{io.ErrUnexpectedEOF, "", runtime.ErrUnavailable},
	} {
		require.Equal(t, c.means, classify(answer(c.kind, c.text)), c.text)
	}
	require.NoError(t, classify(nil))
}

func TestPullError(t *testing.T) {
	for text, means := range map[string]error{
		"pull access denied for nosuchimage, repository does not exist or may require 'docker login': denied: requested access to the resource is denied": runtime.ErrImageNotFound,
		"manifest for alpine:nope not found: manifest unknown: manifest unknown":                                                                          runtime.ErrImageNotFound,
		"manifest for 127.0.0.1:5000/x:1 not found":                                                                                                       runtime.ErrImageNotFound,
		"manifest unknown": runtime.ErrImageNotFound,
		"no matching manifest for linux/amd64 in the manifest list entries":                                                                                runtime.ErrOtherMachine,
		`Head "http://127.0.0.1:5000/v2/x/manifests/1": no basic auth credentials`:                                                                         runtime.ErrDenied,
		`Get "https://ghcr.io/v2/x/manifests/1": unauthorized`:                                                                                             runtime.ErrDenied,
		`Get "https://registry-1.docker.io/v2/": unauthorized: incorrect username or password`:                                                             runtime.ErrDenied,
		`Head "https://ghcr.io/v2/x/manifests/1": denied`:                                                                                                  runtime.ErrDenied,
		`invalid reference format: repository name must be lowercase`:                                                                                      runtime.ErrInvalid,
		`Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 10.255.255.53:53: no such host`:                                  nil,
		`Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io on 10.0.0.1:53: server misbehaving`:                                                           nil,
		`Get "http://127.0.0.1:5999/v2/": dial tcp 127.0.0.1:5999: connect: connection refused`:                                                            nil,
		`Get "https://registry-1.docker.io/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)`: nil,
		`toomanyrequests: You have reached your unauthenticated pull rate limit. denied: `:                                                                 nil,
		`received unexpected HTTP status: 503 Service Unavailable`:                                                                                         nil,
		`open /var/lib/docker/tmp/x: permission denied`:                                                                                                    nil,
		`write /var/lib/docker/tmp/x: no space left on device`:                                                                                             nil,
	} {
		err := explain(t.Context(), opPull, "ref", pullError("ref", answer(cerrdefs.ErrInternal, text)))
		require.ErrorContains(t, err, text)
		for _, sentinel := range []error{runtime.ErrImageNotFound, runtime.ErrOtherMachine, runtime.ErrDenied, runtime.ErrInvalid, runtime.ErrUnavailable} {
			require.Equal(t, sentinel == means, errors.Is(err, sentinel), "%s: %v", text, sentinel)
		}
	}
}

func TestExplain(t *testing.T) {
	text := "driver failed programming external connectivity on endpoint mc (3703): Bind for 0.0.0.0:25565 failed: port is already allocated"
	err := explain(t.Context(), opStart, "server container mc", answer(cerrdefs.ErrInternal, text))
	require.EqualError(t, err, "start server container mc: port is taken: Bind for 0.0.0.0:25565 failed: port is already allocated")
	call := new(runtime.CallError)
	require.ErrorAs(t, err, &call)
	require.EqualError(t, call.Err, "port is taken: Bind for 0.0.0.0:25565 failed: port is already allocated")

	err = explain(t.Context(), opPull, "x:1", answer(cerrdefs.ErrInternal, "dial tcp: connection refused"))
	require.EqualError(t, err, "pull x:1: dial tcp: connection refused")
	require.True(t, cerrdefs.IsInternal(err))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = explain(ctx, opStart, "x", context.DeadlineExceeded)
	require.ErrorIs(t, err, context.Canceled, "the caller left; the engine is not to blame")
	require.NotErrorIs(t, err, runtime.ErrUnavailable)
}
