package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	cerrdefs "github.com/containerd/errdefs"
	dockernetwork "github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"berth/runtime"
)

// defaultNetwork is a network that dockerd recreates, with another id, at each
// start unless a container kept running.
const defaultNetwork = "bridge"

// Instance returns the id of the engine's default network, which identifies the
// engine's process. It is empty if the engine has no such network or hides it.
//
// Instance opens a new connection. dockerd closes its listeners before it stops
// the first container, but Docker 20.10 answers over open connections until all
// containers have stopped.
func (e *Engine) Instance(ctx context.Context) (id string, err error) {
	err = e.core.calls.do(ctx, opInstance, "engine", func(ctx context.Context) error {
		id, err = e.core.instance(ctx)
		return err
	})
	return id, err
}

func (e *core) instance(ctx context.Context) (string, error) {
	once := &http.Client{CheckRedirect: client.CheckRedirect, Transport: &http.Transport{DisableKeepAlives: true}}
	// Without a host of its own, an HTTP client of ours would not dial the usual socket.
	own := []client.Opt{client.WithHTTPClient(once), client.WithHost(client.DefaultDockerHost)}
	cli, err := client.NewClientWithOpts(append(own, e.conn.options...)...)
	if err != nil {
		return "", err
	}
	defer cli.Close()
	n, err := cli.NetworkInspect(ctx, defaultNetwork, dockernetwork.InspectOptions{})
	switch {
	case errors.Is(classify(err), errNoNetwork), cerrdefs.IsPermissionDenied(err):
		return "", nil
	case err == nil && n.ID == "":
		return "", fmt.Errorf("%w: its answer has no network id", runtime.ErrUnavailable)
	}
	return n.ID, err
}
