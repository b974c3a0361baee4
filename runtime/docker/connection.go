package docker

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/docker/docker/api"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"berth/runtime"
)

// errVersion is the engine's refusal of the API version that was agreed on
// before another engine took its place. Nothing is wrong with the request.
var errVersion = fmt.Errorf("%w: it does not support the API version agreed on before", runtime.ErrUnavailable)

// connection is Docker's client for an engine that may be replaced by one of
// another version. The client agrees on the API version once, and only ever
// lowers it, so a new client takes its place.
type connection struct {
	options []client.Opt
	mu      sync.Mutex // one renewal at a time
	current atomic.Pointer[client.Client]
}

func newConnection(host string) (*connection, error) {
	c := &connection{options: []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}}
	if host != "" {
		c.options = append(c.options, client.WithHost(host))
	}
	cli, err := client.NewClientWithOpts(c.options...)
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	c.current.Store(cli)
	return c, nil
}

func (c *connection) client() *client.Client { return c.current.Load() }

// ping asks whether the engine answers, and renews the client if the engine is
// of another API version than agreed.
func (c *connection) ping(ctx context.Context) error {
	cli := c.client()
	pong, err := cli.Ping(ctx)
	if err != nil || pong.APIVersion == "" || os.Getenv(client.EnvOverrideAPIVersion) != "" {
		return err
	}
	best := pong.APIVersion
	if versions.LessThan(api.DefaultVersion, best) {
		best = api.DefaultVersion
	}
	if cli.ClientVersion() == best {
		return nil
	}
	if err := c.renew(cli); err != nil {
		return err
	}
	return agree(ctx, c.client())
}

// renew replaces a client, unless another call has done so. Streams that are
// open on the old one go on.
func (c *connection) renew(old *client.Client) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client() != old {
		return nil
	}
	cli, err := client.NewClientWithOpts(c.options...)
	if err != nil {
		return fmt.Errorf("docker: %w", err)
	}
	c.current.Store(cli)
	return old.Close()
}

// agree makes the client agree on the API's version, unless it has. Without
// this a failed negotiation is ignored by the client, and an older engine then
// refuses requests that are right.
func agree(ctx context.Context, cli *client.Client) error {
	return cli.NewVersionError(ctx, "1.25", "berth")
}

func (c *connection) close() error { return c.client().Close() }
