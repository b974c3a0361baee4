package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/api/auth"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// Settings is the configuration in force.
type Settings interface {
	auth.Settings
	// Reload reads the file again. It names the keys whose new value needs a
	// restart. On an error the old configuration stays in force; the error's
	// text is told to the administrator.
	Reload() (restartRequired []string, err error)
}

// Console takes input for a running container.
type Console interface {
	// Send writes data to the container's standard input; v1.ErrNotRunning if it does not run.
	Send(ctx context.Context, internalID string, data []byte) error
}

// Stats tells what a container uses.
type Stats interface {
	// Stats is the latest sample of a container; v1.ErrNotRunning if it does not run.
	Stats(ctx context.Context, internalID string) (v1.Stats, error)
	// Samples is the latest sample of each of these containers that runs.
	Samples(ctx context.Context, internalIDs []string) map[string]v1.Stats
}

// Deps is what a Server is made of. Store, Settings and Hub are required; what
// is nil of the others is answered with 503 where it would be needed.
type Deps struct {
	Store      *store.Store
	Settings   Settings
	Hub        *stream.Hub
	Files      Files
	Console    Console
	Stats      Stats
	Engine     func() EngineHealth
	Ready      func() []string // reasons why the daemon is not ready; empty: it is
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	Log        *slog.Logger
	Version    string
	SpoolDir   string // for the content of files until its body has ended; empty: the system's
	ConnsPerIP int    // connections at once from one address, until they had a valid token; 0: 512

	// HeaderTimeout is the time for the first byte of a request, and then for its
	// headers; 0: 10 s.
	HeaderTimeout time.Duration

	// FailureDelay is how long the answer to a wrong token waits, once an address
	// has sent many; 0: 1 s.
	FailureDelay time.Duration
}
