package remote

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
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
		backoff: controller.BackOff{Initial: minWait, Max: maxWait}.New(), limit: maxBatch,
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
			wait = s.failed(result{reason: storeFailed, detail: err.Error()})
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
	for until := time.Now().Add(wait); time.Now().Before(until) && s.settings().Remote == s.target; {
		if !controller.Sleep(ctx, min(settingsInterval, time.Until(until))) {
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

// batch is the content of one request.
type batch struct {
	messages []message
	last     uint64 // the cursor after the delivery
	lost     uint64 // number of transitions that a gap replaces
}

// message is a transition, or a gap, which has no seq.
type message struct {
	v1.Event
	Seq   uint64 `json:"seq,omitempty"`
	Epoch string `json:"epoch"` // the epoch of Seq, or of the seq in Data of a gap
}

// eventGap means that transitions before the seq in Data are no longer stored.
const eventGap = "gap"

func (b batch) empty() bool { return len(b.messages) == 0 }

// body returns the JSON body of a request.
func (b batch) body(node string) []byte {
	body, _ := json.Marshal(struct { // plain data cannot fail to marshal
		Node   string    `json:"node"`
		Events []message `json:"events"`
	}{node, b.messages})
	return body
}

// next returns the transitions after the cursor, up to the limit. A gap is sent alone, so
// that a panel that rejects it still receives the transitions after it.
func (s *Sender) next() (b batch, err error) {
	tx := s.store.Read()
	cursor := store.Cursor(tx, cursorName)
	events, err := store.ReadEvents(tx, cursor, s.limit)
	if errors.Is(err, store.ErrCompacted) {
		return gap(tx, cursor, s.store.Incarnations.Epoch()), nil
	}
	b = batch{last: cursor}
	for _, e := range events {
		b.messages = append(b.messages, messageOf(e))
		b.last = e.Seq
	}
	return b, err
}

// messageOf returns a transition as the panel receives it: without what responses leave out.
func messageOf(e v1.Event) message {
	e.UID, e.Users = "", nil
	return message{Event: e, Seq: e.Seq, Epoch: e.Epoch}
}

// gap returns the batch that moves the cursor to the oldest stored transition.
func gap(tx *store.Tx, cursor uint64, epoch string) batch {
	oldest, _ := tx.EventBounds()
	b := batch{
		messages: []message{{Event: v1.Event{Time: tx.Now(), Event: eventGap, Data: strconv.FormatUint(oldest, 10)}, Epoch: epoch}},
		last:     oldest - 1,
	}
	if b.last > cursor {
		b.lost = b.last - cursor
	}
	return b
}

// advance stores that the panel has received every transition up to b.last.
func (s *Sender) advance(b batch) error {
	return s.store.Update(func(tx *store.Tx) error { return store.SetCursor(tx, cursorName, b.last) })
}

// handle acts on the result of a request and returns how long to wait.
func (s *Sender) handle(b batch, v result) (time.Duration, error) {
	switch {
	case v.reason == accepted:
		return 0, s.accepted(b)
	case v.reason != refused:
		return s.failed(v), nil
	case len(b.messages) > 1:
		s.metrics.failures.WithLabelValues(string(refused)).Inc()
		s.limit = len(b.messages) / 2
		s.log.Debug("the panel refused a batch, sending it in two parts", "status", v.detail, "transitions", len(b.messages))
		return 0, nil
	}
	return s.park(b, v)
}

func (s *Sender) accepted(b batch) error {
	if err := s.advance(b); err != nil {
		return err
	}
	if b.lost > 0 {
		s.metrics.lost.Add(float64(b.lost))
		s.log.Warn("the panel missed transitions: they were removed by events.retention or events.max before it was reachable",
			"lost", b.lost, "continues_after_seq", b.last)
	}
	if s.failing != accepted {
		s.log.Info("the panel accepts transitions again", "after", time.Since(s.since).Round(time.Second))
	}
	s.failing, s.parked = accepted, 0
	s.limit = min(s.limit*2, maxBatch)
	s.backoff.Reset()
	return nil
}

// failed records a failure that is not about the content, and returns how long to wait.
func (s *Sender) failed(v result) time.Duration {
	wait := s.backoff.NextBackOff()
	if v.reason.needsOperator() {
		wait = max(wait, minOperatorWait)
	}
	wait = max(wait, min(v.retryAfter, maxRetryAfter))
	s.metrics.failures.WithLabelValues(string(v.reason)).Inc()
	if s.failing == accepted {
		s.since = time.Now()
	}
	log := s.log.Debug
	if s.failing != v.reason {
		log = s.log.Warn
	}
	s.failing = v.reason
	log("the panel does not accept transitions", "reason", v.reason, "detail", v.detail, "retry_in", wait.Round(time.Millisecond))
	return wait
}

// park skips the one transition that the panel refuses. A panel that refuses many in a
// row is probably broken itself: after freeRefusals each costs a wait, so that few are
// skipped before an operator reacts.
func (s *Sender) park(b batch, v result) (time.Duration, error) {
	if err := s.advance(b); err != nil {
		return 0, err
	}
	m := b.messages[0]
	s.metrics.failures.WithLabelValues(string(refused)).Inc()
	s.metrics.parked.Inc()
	s.parked++
	s.log.Error("the panel refused a transition: it is skipped for the panel and stays in GET /events",
		"seq", m.Seq, "container", m.Container, "event", m.Event.Event, "data", m.Data, "status", v.detail)
	if s.parked <= freeRefusals {
		return 0, nil
	}
	return max(s.backoff.NextBackOff(), minOperatorWait), nil
}
