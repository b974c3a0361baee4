package edge

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// Limits on requests with a missing or wrong token.
const (
	maxAddresses    = 1024 // counted separately; all others are counted together
	failuresFree    = 20   // wrong tokens per address and failureWindow that are answered without delay
	failureWindow   = time.Minute
	failureDelay    = time.Second // delay of each further answer
	failuresWaiting = 64          // delayed answers at once; beyond it the answer is immediate and the connection is closed
)

// failures counts failed authorizations, and logs them at most once a second per
// address. Answers to an address that sends many wrong tokens are delayed. Valid
// tokens are never delayed, so no client is locked out.
type failures struct {
	log     *slog.Logger
	count   prometheus.Counter
	delay   time.Duration
	waiting chan struct{}

	mu  sync.Mutex
	all map[string]*failureRecord // by network
}

// failureRecord counts the failures of one address.
type failureRecord struct {
	since  time.Time // start of its failureWindow
	wrong  int       // wrong tokens since then
	logged time.Time // the last failure, or the last wrong vendor header
}

func newFailures(o Options) *failures {
	count := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "berth_auth_failures_total",
		Help: "Requests with a missing or invalid token.",
	})
	o.Registerer.MustRegister(count)
	return &failures{log: o.Log, count: count, delay: o.FailureDelay,
		waiting: make(chan struct{}, failuresWaiting), all: map[string]*failureRecord{}}
}

// record counts a failed authorization. wrong is false for a missing token. It
// reports whether the answer must be delayed.
func (f *failures) record(address string, wrong bool) (slow bool) {
	f.count.Inc()
	log, slow := f.add(network(address), wrong, time.Now())
	if log {
		f.log.Warn("authorization failed", slog.String("address", address))
	}
	return slow
}

// add counts a failure. It reports whether to log it, and whether to delay the answer.
func (f *failures) add(name string, wrong bool, now time.Time) (log, slow bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.of(name, now)
	if now.Sub(one.since) >= failureWindow {
		one.since, one.wrong = now, 0
	}
	if wrong {
		one.wrong++
	}
	if log = now.Sub(one.logged) >= time.Second; log {
		one.logged = now
	}
	return log, wrong && one.wrong > failuresFree
}

func (f *failures) of(name string, now time.Time) *failureRecord {
	if f.all[name] == nil && len(f.all) >= maxAddresses {
		maps.DeleteFunc(f.all, func(_ string, one *failureRecord) bool { return now.Sub(one.since) >= failureWindow })
	}
	if f.all[name] == nil && len(f.all) >= maxAddresses {
		name = "" // all other addresses together
	}
	if f.all[name] == nil {
		f.all[name] = &failureRecord{since: now}
	}
	return f.all[name]
}

// wait delays one answer, or returns when ctx ends. It returns false at once if
// failuresWaiting answers are delayed already.
func (f *failures) wait(ctx context.Context) bool {
	select {
	case f.waiting <- struct{}{}:
	default:
		return false
	}
	defer func() { <-f.waiting }()
	timer := time.NewTimer(f.delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return true
}

// Unauthorized records a request without a valid token, and delays it if its
// address has sent many wrong ones. wrong is false for a missing token.
func (s *Server) Unauthorized(c *fiber.Ctx, wrong bool) {
	if !s.failures.record(s.ClientIP(c), wrong) {
		return
	}
	ctx, cancel := Context(c)
	defer cancel()
	if !s.failures.wait(ctx) {
		c.Context().SetConnectionClose()
	}
}

// WrongToken records a wrong token that a client sent on an open connection.
func (s *Server) WrongToken(address string) { s.failures.record(address, true) }

// shownAccept is how many bytes of a wrong Accept header are logged.
const shownAccept = 100

// WrongVendor names the expected Accept header in the response, and in the log at most
// once a second per address.
func (s *Server) WrongVendor(c *fiber.Ctx, expected string) {
	c.Set("X-Expected-Accept", expected)
	address := s.ClientIP(c)
	if log, _ := s.failures.add(network(address), false, time.Now()); log {
		accept := c.Get(fiber.HeaderAccept)
		s.log.Warn("invalid vendor header: send the expected Accept header", slog.String("request", RequestID(c)),
			slog.String("address", address), slog.String("expected", expected),
			slog.String("accept", accept[:min(len(accept), shownAccept)]))
	}
}
