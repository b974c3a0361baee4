package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/prometheus/client_golang/prometheus"

	"berth/runtime"
	"berth/runtime/keeper"
)

// Config configures an Engine. Only StoreID has no default.
type Config struct {
	Host        string        // address of the engine, as in DOCKER_HOST; empty: DOCKER_HOST, else the local socket
	StoreID     string        // id of the store that owns the containers
	Network     string        // network of the containers, created if it is missing; empty: berth
	MTU         int           // longest packet of Network, if it is created; 0: that of the host's default route
	PidsLimit   int64         // processes of a container whose spec has no limit; 0: 512
	NofileLimit int64         // open files of a process; 0: the engine's default
	TmpSize     int64         // bytes of each file system in memory of a container with a read-only root; 0: 128 MiB
	LogMaxSize  int64         // bytes of one of Docker's log files; 0: 20 MiB
	LogMaxFiles int           // Docker's log files per container; 0: 2
	StallLimit  time.Duration // longest time without progress in a pull; 0: 2 minutes
	Keeper      string        // path of the program cmd/keeper
	Volumes     string        // directory of the volumes, which the engine sees under the same path

	profile string // seccomp profile in place of the engine's default; empty: that one
	cpus    int    // processors of the engine's host; 0: unknown
	keeper  string // folder of the keeper, in Volumes

	// Guard, if not nil, is called with the bridge of Network before the first
	// container is attached to it, and again after the network was recreated.
	Guard func(context.Context, runtime.Bridge)
}

func (c Config) withDefaults() Config {
	if c.Network == "" {
		c.Network = "berth"
	}
	if c.PidsLimit == 0 {
		c.PidsLimit = 512
	}
	if c.TmpSize == 0 {
		c.TmpSize = 128 << 20
	}
	if c.LogMaxSize == 0 {
		c.LogMaxSize = 20 << 20
	}
	if c.LogMaxFiles == 0 {
		c.LogMaxFiles = 2
	}
	if c.StallLimit == 0 {
		c.StallLimit = 2 * time.Minute
	}
	return c
}

// Engine drives the containers of one store. It is safe for concurrent use.
type Engine struct {
	cfg    Config
	conn   *connection
	calls  *calls
	ids    *ids
	ooms   *ooms
	net    *network
	keeper keeper.Keeper
	host   atomic.Pointer[hostFacts]
	shared atomic.Bool // the engine sees the directory of the volumes that this process sees
	log    *slog.Logger
}

// New returns an Engine. It does not connect to Docker, which may be unreachable.
func New(c Config, r prometheus.Registerer, log *slog.Logger) (*Engine, error) {
	if c.StoreID == "" {
		return nil, errors.New("docker: no store id")
	}
	// In these modes containers would share the network namespace of another.
	if m := container.NetworkMode(c.Network); m.IsHost() || m.IsContainer() {
		return nil, fmt.Errorf("docker: network %q shares a network namespace: use the name of a bridge network", c.Network)
	}
	conn, err := newConnection(c.Host)
	if err != nil {
		return nil, err
	}
	c = c.withDefaults()
	calls := newCalls(conn, newMetrics(r))
	return &Engine{cfg: c, conn: conn, calls: calls, ids: new(ids), ooms: new(ooms),
		net: newNetwork(c, conn, calls, log), log: log}, nil
}

// Ping returns nil if the engine answers. Any other error wraps ErrUnavailable.
func (e *Engine) Ping(ctx context.Context) error {
	err := e.calls.do(ctx, opPing, "engine", func(ctx context.Context) error {
		_, err := e.conn.client().Ping(ctx)
		return err
	})
	if err != nil && !errors.Is(err, runtime.ErrUnavailable) {
		return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	return err
}

// Ready returns nil if the engine works, else the reason. A ping is not enough:
// while containerd hangs, the engine answers pings and lists, but no inspects. So
// Ready also requires that the engine answered the last completed inspect.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.Ping(ctx); err != nil {
		return err
	}
	if since, ok := e.calls.unanswered(); ok {
		return fmt.Errorf("%w: it last answered an inspect %s ago", runtime.ErrUnavailable, since.Round(time.Second))
	}
	return nil
}

// Lacks returns nothing: Docker has every capability.
func (e *Engine) Lacks() []runtime.Capability { return []runtime.Capability{runtime.CanPlace} }

// Bridge asks the engine for the bridge of the containers' network.
func (e *Engine) Bridge(ctx context.Context) (runtime.Bridge, error) { return e.net.bridge(ctx) }

// Close closes the idle connections to the engine.
func (e *Engine) Close() error { return e.conn.client().Close() }
