package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"berth/runtime"
)

// Config is what an Engine needs to know. Only StoreID has no default.
type Config struct {
	Host        string        // of the engine, as in DOCKER_HOST; empty: DOCKER_HOST, else the local socket
	StoreID     string        // of the store whose containers these are
	Network     string        // that containers are attached to; made if there is none. Empty: berth
	PidsLimit   int64         // processes of a container whose spec names none; 0: 512
	NofileLimit int64         // open files of a process; 0: the engine's own
	LogMaxSize  int64         // bytes of one of Docker's log files; 0: 20 MiB
	LogMaxFiles int           // of them per container; 0: 2
	StallLimit  time.Duration // for which a pull may make no progress; 0: 2 minutes

	// Guard, if not nil, is called with the bridge of Network before the first
	// container is attached to it, and after it was made again.
	Guard func(context.Context, runtime.Bridge)
}

func (c Config) withDefaults() Config {
	if c.Network == "" {
		c.Network = "berth"
	}
	if c.PidsLimit == 0 {
		c.PidsLimit = 512
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

// Engine drives the containers of one store. It can be used by many goroutines.
type Engine struct{ *core }

// core is what an Engine works with.
type core struct {
	cfg    Config
	conn   *connection
	calls  *calls
	images singleflight.Group // looks at images, by their references
	ids    *ids
	ooms   *ooms
	net    *network
	log    *slog.Logger
}

// New returns an Engine. It does not talk to Docker, which may be away.
func New(c Config, r prometheus.Registerer, log *slog.Logger) (*Engine, error) {
	if c.StoreID == "" {
		return nil, errors.New("docker: no store id")
	}
	// Any of these would put containers into a namespace that is not their own.
	if m := container.NetworkMode(c.Network); m.IsHost() || m.IsContainer() {
		return nil, fmt.Errorf("docker: network %q is not a network of its own", c.Network)
	}
	conn, err := newConnection(c.Host)
	if err != nil {
		return nil, err
	}
	c = c.withDefaults()
	calls := newCalls(conn, newMetrics(r))
	return &Engine{&core{
		cfg: c, conn: conn, calls: calls, ids: newIDs(), ooms: newOOMs(),
		net: newNetwork(c, conn, calls, log), log: log,
	}}, nil
}

// Ping asks whether the engine answers at all. Any failure is ErrUnavailable.
func (e *Engine) Ping(ctx context.Context) error {
	err := e.calls.do(ctx, opPing, "engine", e.conn.ping)
	if err != nil && !errors.Is(err, runtime.ErrUnavailable) {
		return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	return err
}

// Ready tells why the engine cannot be relied on, or nil. A ping is not
// enough: while containerd hangs, pings and lists are answered, and inspects
// are not. So the last inspect that came to an end must have been answered.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.Ping(ctx); err != nil {
		return err
	}
	if since, ok := e.calls.silent(); ok {
		return fmt.Errorf("%w: inspects were last answered %s ago", runtime.ErrUnavailable, since.Round(time.Second))
	}
	return nil
}

// Bridge returns the bridge that containers are attached to, as it is now.
func (e *Engine) Bridge(ctx context.Context) (runtime.Bridge, error) { return e.net.bridge(ctx) }

// Close drops the connections to the engine that are idle.
func (e *Engine) Close() error { return e.conn.close() }
