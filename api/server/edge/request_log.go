package edge

import (
	"cmp"
	"log/slog"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/time/rate"

	v1 "berth/api/v1"
)

// A client with a token can cause so many lines of the log in a second, and so many
// at once.
const (
	logRate  = 50
	logBurst = 500
)

// misplacedToken matches a token that a client put into a path by mistake.
var misplacedToken = regexp.MustCompile(`berth_[0-9a-f]+`)

// MaskTokens returns text with three asterisks in the place of each token.
func MaskTokens(text string) string { return misplacedToken.ReplaceAllString(text, "***") }

// requestLog writes a line for each request: at info for requests that may change
// something, unless they are dry runs or have no valid token, else at debug. Lines beyond logRate are
// counted in the next.
type requestLog struct {
	log     *slog.Logger
	limit   *rate.Limiter
	skipped atomic.Int64
}

func newRequestLog(log *slog.Logger) *requestLog {
	return &requestLog{log: log, limit: rate.NewLimiter(logRate, logBurst)}
}

// write logs an answered request from the address that address returns. The line has the path without its query, which may
// contain a token.
func (l *requestLog) write(c *fiber.Ctx, address func(*fiber.Ctx) string, took time.Duration) {
	level := slog.LevelDebug
	token, authenticated := c.Locals(tokenKey).(string)
	changes := c.Method() != fiber.MethodGet && c.Method() != fiber.MethodHead && c.Method() != fiber.MethodOptions
	if changes && c.Locals(dryRunKey) == nil && (authenticated || c.Response().StatusCode() < fiber.StatusBadRequest) { // without authorization no request has a token
		level = slog.LevelInfo
	}
	if !l.log.Enabled(c.Context(), level) {
		return
	}
	if !l.limit.Allow() {
		l.skipped.Add(1)
		return
	}
	args := []slog.Attr{
		slog.String("method", c.Method()), slog.String("path", MaskTokens(c.Path())), slog.Int("status", c.Response().StatusCode()),
		slog.String("address", address(c)), slog.String("request", RequestID(c)), slog.Duration("took", took.Round(time.Microsecond)),
	}
	if authenticated {
		args = append(args, slog.String("token", cmp.Or(token, "administrator")))
	}
	if actor := Actor(c); actor != (v1.Actor{}) {
		args = append(args, slog.String("actor", actor.String()))
	}
	if code := c.GetRespHeader("X-Error-Code"); code != "" {
		args = append(args, slog.String("error", code))
	}
	if n := l.skipped.Swap(0); n > 0 {
		args = append(args, slog.Int64("skipped", n))
	}
	l.log.LogAttrs(c.Context(), level, "request", args...)
}
