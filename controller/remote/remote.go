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

// cursorName is where the store keeps the seq that the panel has.
const cursorName = "remote"

const (
	maxBatch     = 100              // transitions
	firstWait    = time.Second      // after the first failure
	longestWait  = 5 * time.Minute  // between two tries
	slowWait     = 30 * time.Second // at least, where only an operator can help
	longestAsked = time.Hour        // that Retry-After may ask for
	requeueAfter = time.Second      // at the settings, while there is nothing else to do
	freeRefusals = 3                // transitions parked in a row before each costs a slow wait
)

// Options are what a Sender works with.
type Options struct {
	Store      *store.Store
	Settings   func() v1.Config // asked before each request
	Hostname   string           // the node's name where the settings have none
	Version    string           // for the User-Agent
	Transport  http.RoundTripper
	Registerer prometheus.Registerer // nil: no metrics
	Log        *slog.Logger
}

// Sender delivers transitions to the panel. It is used by one goroutine, in Run.
type Sender struct {
	store    *store.Store
	settings func() v1.Config
	hostname string
	client   *client
	metrics  *metrics
	log      *slog.Logger

	backoff backoff.BackOff
	target  v1.RemoteConfig // that the state below is about
	limit   int             // transitions in the next batch
	parked  int             // in a row, none accepted between
	failing reason          // of the last try; empty: it succeeded
	since   time.Time       // when it began to fail
}

// New makes a Sender. Its error is about the registration of its metrics.
func New(o Options) (*Sender, error) {
	m, err := newMetrics(o.Registerer, o.Store, o.Settings)
	if err != nil {
		return nil, err
	}
	return &Sender{
		store: o.Store, settings: o.Settings, hostname: o.Hostname,
		client: newClient(o.Transport, o.Version), metrics: m, log: o.Log,
		backoff: controller.BackOff(firstWait, longestWait)(), limit: maxBatch,
	}, nil
}

// Run delivers until ctx ends. It returns an error only when the store is closed.
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
		return requeueAfter, nil
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
		return 0, nil // it is sent again
	}
	return s.handle(b, v)
}

// follow begins anew when the settings have changed.
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

// pause waits, but not longer than the settings stay as they are.
func (s *Sender) pause(ctx context.Context, wait time.Duration) {
	tick := time.NewTicker(requeueAfter)
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

// await returns when there is a transition after seq, and at the latest when it
// is time to look at the settings.
func (s *Sender) await(ctx context.Context, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, requeueAfter)
	defer cancel()
	for _, err := range s.store.Events(ctx, seq) {
		if errors.Is(err, store.ErrCompacted) {
			return nil // the next look tells the gap
		}
		return err
	}
	return nil
}
