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

// errVersion means that the engine refuses the negotiated API version, because
// an engine of another version replaced it. The request itself is valid.
var errVersion = fmt.Errorf("%w: it does not support the API version that was negotiated before", runtime.ErrUnavailable)

// connection holds Docker's client. An engine of another version may replace the
// engine. Docker's client negotiates the API version once and can only lower it,
// so connection then replaces the client.
type connection struct {
	options []client.Opt
	mu      sync.Mutex // creating renewal at a time
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

// ping checks that the engine answers, and renews the client if the engine
// supports another API version than the negotiated one.
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

// renew replaces a client, unless another call has done so. Open streams of the
// old client continue.
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

// agree negotiates the API version, unless the client has done so. Otherwise the
// client would ignore a failed negotiation, and an older engine would refuse
// valid requests.
func agree(ctx context.Context, cli *client.Client) error {
	return cli.NewVersionError(ctx, "1.25", "berth")
}

func (c *connection) close() error { return c.client().Close() }
