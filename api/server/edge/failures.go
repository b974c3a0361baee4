package edge

import (
	"log/slog"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// failureDelay is the delay of each answer to an address with too many wrong tokens.
const failureDelay = time.Second

// failures counts failed authorizations, and logs them at most once a second per
// address. Answers to an address that sends many wrong tokens are delayed, each on its
// connection, whose number is limited. Valid tokens are never delayed, so no client is locked out.
type failures struct {
	log   *slog.Logger
	count prometheus.Counter
	wrong *limit.Rate // wrong tokens, by address
	lines *limit.Rate // of the log, by address
	delay time.Duration
}

func newFailures(o Options) *failures {
	count := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "berth_auth_failures_total",
		Help: "Requests with a missing or invalid token.",
	})
	o.Registerer.MustRegister(count)
	return &failures{log: o.Log, count: count, delay: o.FailureDelay, wrong: o.WrongTokens,
		lines: limit.NewRate(limit.FailureLines())}
}

// record counts a failed authorization. wrong is false for a missing token. It
// reports whether the answer must be delayed.
func (f *failures) record(address string, wrong bool) (slow bool) {
	f.count.Inc()
	if f.mayLog(address) {
		f.log.Warn("authorization failed", slog.String("address", address))
	}
	return wrong && f.wrong.Take(limit.Network(address), 1) > 0
}

// mayLog reports whether there may be a line about an address, and counts it.
func (f *failures) mayLog(address string) bool { return f.lines.Take(limit.Network(address), 1) == 0 }

// Unauthorized records a request without a valid token, and delays it if its
// address has sent many wrong ones. wrong is false for a missing token.
func (s *Server) Unauthorized(c *fiber.Ctx, wrong bool) {
	if s.failures.record(s.ClientIP(c), wrong) {
		time.Sleep(s.failures.delay) // also if the client leaves or the server shuts down: it is short
	}
}

// shownAccept is how many bytes of a wrong Accept header are logged.
const shownAccept = 100

// WrongVendor names the expected Accept header in the response, and in the log at most
// once a second per address.
func (s *Server) WrongVendor(c *fiber.Ctx, expected string) {
	c.Set("X-Expected-Accept", expected)
	address := s.ClientIP(c)
	if s.failures.mayLog(address) {
		accept := v1.MaskTokens(c.Get(fiber.HeaderAccept))
		s.log.Warn("invalid vendor header: send the expected Accept header", slog.String("request", CallOf(c).ID),
			slog.String("address", address), slog.String("expected", expected),
			slog.String("accept", accept[:min(len(accept), shownAccept)]))
	}
}
