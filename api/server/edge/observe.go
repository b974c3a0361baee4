package edge

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"berth/api/limit"
	v1 "berth/api/v1"
)

func newDuration(r prometheus.Registerer) *prometheus.HistogramVec {
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_http_request_duration_seconds",
		Help:    "Time from the headers of a request to its answer.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"route", "code"})
	r.MustRegister(duration)
	return duration
}

// observe is the outermost middleware. It assigns the request id, answers errors
// and panics, records the duration, writes the log, and prepares the connection for the next
// request.
func (s *Server) observe(c *fiber.Ctx) error {
	began := time.Now()
	id := c.Get("X-Request-Id")
	if id == "" || !requestName.MatchString(id) {
		id = newRequestID()
	}
	call := &Call{ID: id, answers: s.answers}
	c.Locals(callKey, call)
	c.Set("X-Request-Id", id)
	c.Set("X-Content-Type-Options", "nosniff")
	c.Set(fiber.HeaderCacheControl, "no-store")
	err := s.recovered(c)
	if err != nil {
		err = s.fail(c, err)
	}
	// A request that failed already is answered and logged with the first cause.
	if failed := s.answered(c); failed != nil && c.Response().StatusCode() < fiber.StatusInternalServerError {
		err = s.fail(c, failed)
	}
	if call.leave != nil {
		call.leave()
	}
	drain(c)
	took := time.Since(began)
	s.duration.WithLabelValues(cmp.Or(call.Route, "none"), strconv.Itoa(c.Response().StatusCode())).Observe(took.Seconds())
	s.requests.write(c, s.ClientIP, took)
	return err
}

// recovered calls the next handler, and turns a panic into errInternal.
func (s *Server) recovered(c *fiber.Ctx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("handler panicked", slog.String("request", CallOf(c).ID),
				slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
			err = errInternal
		}
	}()
	return c.Next()
}

// requestLog writes a line for each request: at info for requests that may change
// something, unless they are dry runs or have no valid token, else at debug. Lines beyond
// limit.RequestLines are counted in the next.
type requestLog struct {
	log     *slog.Logger
	limit   *limit.Rate
	skipped atomic.Int64
}

func newRequestLog(log *slog.Logger) *requestLog {
	return &requestLog{log: log, limit: limit.NewRate(limit.RequestLines())}
}

// write logs an answered request from the address that address returns. The line has the path without its query, which may
// contain a token.
func (l *requestLog) write(c *fiber.Ctx, address func(*fiber.Ctx) string, took time.Duration) {
	level := slog.LevelDebug
	call := CallOf(c)
	changes := c.Method() != fiber.MethodGet && c.Method() != fiber.MethodHead && c.Method() != fiber.MethodOptions
	if changes && !call.DryRun && (call.proved || c.Response().StatusCode() < fiber.StatusBadRequest) {
		level = slog.LevelInfo
	}
	if !l.log.Enabled(c.Context(), level) {
		return
	}
	if l.limit.Take("requests", 1) > 0 {
		l.skipped.Add(1)
		return
	}
	args := []slog.Attr{
		slog.String("method", c.Method()), slog.String("path", v1.MaskTokens(c.Path())), slog.Int("status", c.Response().StatusCode()),
		slog.String("address", address(c)), slog.String("request", call.ID), slog.Duration("took", took.Round(time.Microsecond)),
	}
	if call.proved {
		args = append(args, slog.String("token", cmp.Or(call.token, "administrator")))
	}
	if call.Actor != (v1.Actor{}) {
		args = append(args, slog.String("actor", call.Actor.String()))
	}
	if code := c.GetRespHeader("X-Error-Code"); code != "" {
		args = append(args, slog.String("error", code))
	}
	if n := l.skipped.Swap(0); n > 0 {
		args = append(args, slog.Int64("skipped", n))
	}
	l.log.LogAttrs(c.Context(), level, "request", args...)
}
