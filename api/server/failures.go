package server

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// The bounds of what failed tokens cost.
const (
	maxAddresses    = 1024 // counted one by one; all others are counted together
	failuresFree    = 20   // answers at once to an address in a failureWindow
	failureWindow   = time.Minute
	failureDelay    = time.Second // that the answer to each more waits
	failuresWaiting = 64          // answers that wait at once; more are given at once, and their connection ends
)

// failures counts failed tokens, and logs them at most once a second per address.
// An address that sends many wrong ones waits for each answer; valid tokens
// never wait, so nobody is shut out.
type failures struct {
	log     *slog.Logger
	count   prometheus.Counter
	delay   time.Duration
	waiting chan struct{}

	mu  sync.Mutex
	all map[string]*failureRecord // by network
}

// failureRecord is an address that has sent wrong tokens.
type failureRecord struct {
	since  time.Time // the begin of its failureWindow
	wrong  int       // since then
	logged time.Time
}

func newFailures(d Deps, count prometheus.Counter) *failures {
	return &failures{log: d.Log, count: count, delay: d.FailureDelay,
		waiting: make(chan struct{}, failuresWaiting), all: map[string]*failureRecord{}}
}

// record counts a failed token. It reports whether the answer has to wait.
func (f *failures) record(address string, wrong bool) (slow bool) {
	f.count.Inc()
	log, slow := f.add(network(address), wrong, time.Now())
	if log {
		f.log.Warn("authorization failed", slog.String("address", address))
	}
	return slow
}

// add reports whether to log the failure, and whether there were many.
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
		name = "" // that of all others
	}
	if f.all[name] == nil {
		f.all[name] = &failureRecord{since: now}
	}
	return f.all[name]
}

// wait waits for the time of one answer, or until ctx ends. It returns false at
// once if too many wait already.
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

// unauthorized records a request without a valid token. A wrong one waits if its
// address has sent many.
func (s *Server) unauthorized(c *fiber.Ctx, wrong bool) {
	if !s.failures.record(s.clientIP(c), wrong) {
		return
	}
	ctx, cancel := withClient(c)
	defer cancel()
	defer s.underway.begin(cancel)()
	if !s.failures.wait(ctx) {
		c.Context().SetConnectionClose()
	}
}

// clientIP is the address that a request came from. X-Forwarded-For is believed
// from trusted proxies only: the last address in it that is not one of theirs.
func (s *Server) clientIP(c *fiber.Ctx) string {
	address := c.Context().RemoteIP().String()
	trusted := s.settings.Current().Server.TrustedProxies
	hops := strings.Split(c.Get(fiber.HeaderXForwardedFor), ",")
	for i := len(hops) - 1; i >= 0 && within(trusted, address); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop.Unmap().String()
	}
	return address
}

// trusted reports whether an address is one of a trusted proxy.
func (s *Server) trusted(address string) bool {
	return within(s.settings.Current().Server.TrustedProxies, address)
}

// within says whether an address is in one of the networks.
func within(networks []string, address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, text := range networks {
		network, err := netip.ParsePrefix(text)
		if err == nil && network.Contains(ip.Unmap()) {
			return true
		}
	}
	return false
}
