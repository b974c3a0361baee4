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

// defaultNetwork is made anew by dockerd at each start at which no container
// runs on, with another id.
const defaultNetwork = "bridge"

// Instance identifies the engine's process by the id of its default network.
// It is empty for an engine without that network, or one that does not show it.
//
// It is asked over a new connection. dockerd closes its listeners before it
// stops the first container; over open connections 20.10 goes on to answer for
// as long as its containers take to stop.
func (e *Engine) Instance(ctx context.Context) (id string, err error) {
	err = e.calls.do(ctx, opInstance, "engine", func(ctx context.Context) error {
		id, err = e.instance(ctx)
		return err
	})
	return id, err
}

func (e *core) instance(ctx context.Context) (string, error) {
	once := &http.Client{CheckRedirect: client.CheckRedirect, Transport: &http.Transport{DisableKeepAlives: true}}
	cli, err := client.NewClientWithOpts(append([]client.Opt{client.WithHTTPClient(once)}, e.conn.options...)...)
	if err != nil {
		return "", err
	}
	defer cli.Close()
	n, err := cli.NetworkInspect(ctx, defaultNetwork, dockernetwork.InspectOptions{})
	switch {
	case errors.Is(classify(err), errNoNetwork), cerrdefs.IsPermissionDenied(err):
		return "", nil
	case err == nil && n.ID == "":
		return "", fmt.Errorf("%w: its answer is no network", runtime.ErrUnavailable)
	}
	return n.ID, err
}
