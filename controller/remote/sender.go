package remote

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// cursorName names the cursor in the store: the seq of the last delivered transition.
const cursorName = "remote"

const (
	maxBatch         = 100              // transitions
	minWait          = time.Second      // after the first failure
	maxWait          = 5 * time.Minute  // between two attempts
	minOperatorWait  = 30 * time.Second // after a failure that only an operator can fix
	maxRetryAfter    = time.Hour        // larger values of Retry-After are reduced to it
	settingsInterval = time.Second      // between two checks for changed settings
	freeRefusals     = 3                // consecutive parked transitions without a wait
)

// Options configures a Sender.
type Options struct {
	Store      *store.Store
	Settings   func() v1.Config // called before each request
	Hostname   string           // the name of the node if the settings have none
	Version    string           // for the User-Agent
	Transport  http.RoundTripper
	Registerer prometheus.Registerer // nil: no metrics
	Log        *slog.Logger
}

// Sender delivers transitions to the panel. Only the goroutine of Run uses its state.
type Sender struct {
	store    *store.Store
	settings func() v1.Config
	hostname string
	client   *client
	metrics  *metrics
	log      *slog.Logger

	backoff backoff.BackOff
	target  v1.RemoteConfig // the settings that the fields below belong to
	limit   int             // maximum number of transitions in the next batch
	parked  int             // consecutive parked transitions
	failing reason          // of the last attempt; empty if it succeeded
	since   time.Time       // of the first failure in a row
}

// New returns a Sender. It fails only if the metrics cannot be registered.
func New(o Options) (*Sender, error) {
	m, err := newMetrics(o.Registerer, o.Store, o.Settings)
	if err != nil {
		return nil, err
	}
	return &Sender{
		store: o.Store, settings: o.Settings, hostname: o.Hostname,
		client: newClient(o.Transport, o.Version), metrics: m, log: o.Log,
		backoff: controller.BackOff(minWait, maxWait)(), limit: maxBatch,
	}, nil
}

// Run delivers transitions until ctx ends. It returns an error only if the store is closed.
func (s *Sender) Run(ctx context.Context) error {
	defer s.client.close()
	for ctx.Err() == nil {
		wait, err := s.step(ctx)
		if errors.Is(err, store.ErrClosed) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			wait = s.storeFailed(err)
		}
		s.pause(ctx, wait)
	}
	return nil
}

// step delivers one batch, or waits for a transition. It returns how long to
// wait before the next step.
func (s *Sender) step(ctx context.Context) (time.Duration, error) {
	target := s.settings().Remote
	s.follow(target)
	if !target.Enabled {
		return settingsInterval, nil
	}
	b, err := s.next()
	if err != nil {
		return 0, err
	}
	if b.empty() {
		return 0, s.await(ctx, b.last)
	}
	v := s.client.post(ctx, target, b.body(s.node(target)))
	if ctx.Err() != nil {
		return 0, nil // the next process sends the batch again
	}
	return s.handle(b, v)
}

// follow resets the backoff and the batch size if the settings have changed.
func (s *Sender) follow(target v1.RemoteConfig) {
	if target == s.target {
		return
	}
	s.target = target
	s.limit, s.parked = maxBatch, 0
	s.backoff.Reset()
}

func (s *Sender) node(target v1.RemoteConfig) string {
	if target.Node != "" {
		return target.Node
	}
	return s.hostname
}

// pause waits until wait has passed, the settings have changed, or ctx ends.
func (s *Sender) pause(ctx context.Context, wait time.Duration) {
	tick := time.NewTicker(settingsInterval)
	defer tick.Stop()
	for until := time.Now().Add(wait); time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(until)):
			return
		case <-tick.C:
		}
		if s.settings().Remote != s.target {
			return
		}
	}
}

// await returns once there is a transition after seq, but after settingsInterval at the
// latest, so that the caller can check the settings.
func (s *Sender) await(ctx context.Context, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, settingsInterval)
	defer cancel()
	for _, err := range s.store.Events(ctx, seq) {
		if errors.Is(err, store.ErrCompacted) {
			return nil // the next batch is the gap
		}
		return err
	}
	return nil
}
