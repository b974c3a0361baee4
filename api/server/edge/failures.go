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

func newFailures() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "berth_auth_failures_total",
		Help: "Requests with a missing or invalid token.",
	})
}

// MissingToken records a request without a token.
func (s *Server) MissingToken(c *fiber.Ctx) { s.failed(s.ClientIP(c), false) }

// WrongToken records a request with a token that is not valid. It delays the answer to an address that has
// sent many, on a connection, whose number is limited. Valid tokens are never delayed, so no client is
// locked out.
func (s *Server) WrongToken(c *fiber.Ctx) {
	if s.failed(s.ClientIP(c), true) {
		time.Sleep(failureDelay) // also if the client leaves or the server shuts down: it is short
	}
}

// failed counts a failed authorization, and reports whether its answer must be delayed.
func (s *Server) failed(address string, wrong bool) (slow bool) {
	s.failures.Inc()
	if s.mayLog(address) {
		s.log.Warn("authorization failed", slog.String("address", address))
	}
	return wrong && s.options.WrongTokens.Take(limit.Network(address), 1) > 0
}

// mayLog reports whether there may be a line about an address, once a second, and counts it.
func (s *Server) mayLog(address string) bool {
	return s.failureLines.Take(limit.Network(address), 1) == 0
}

// shownAccept is how many bytes of a wrong Accept header are logged.
const shownAccept = 100

// WrongVendor names the expected Accept header in the response, and in the log at most
// once a second per address.
func (s *Server) WrongVendor(c *fiber.Ctx, expected string) {
	c.Set("X-Expected-Accept", expected)
	address := s.ClientIP(c)
	if s.mayLog(address) {
		accept := v1.MaskTokens(c.Get(fiber.HeaderAccept))
		s.log.Warn("invalid vendor header: send the expected Accept header", slog.String("request", CallOf(c).ID),
			slog.String("address", address), slog.String("expected", expected),
			slog.String("accept", accept[:min(len(accept), shownAccept)]))
	}
}
