package edge

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
)

func newDuration() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_http_request_duration_seconds",
		Help:    "Time from the headers of a request to its answer.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"route", "code"})
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
	if failed := s.options.Answered(c); failed != nil && c.Response().StatusCode() < fiber.StatusInternalServerError {
		err = s.fail(c, failed)
	}
	if call.leave != nil {
		call.leave()
	}
	drain(c)
	took := time.Since(began)
	s.duration.WithLabelValues(cmp.Or(call.Route, "none"), strconv.Itoa(c.Response().StatusCode())).Observe(took.Seconds())
	s.logRequest(c, took)
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

// logRequest logs an answered request: at info if it may have changed something, and was neither a dry
// run nor without a valid token, else at debug. The line has the path without its query, which may contain a
// token. Lines beyond limit.RequestLines are counted in the next.
func (s *Server) logRequest(c *fiber.Ctx, took time.Duration) {
	level := slog.LevelDebug
	call := CallOf(c)
	changes := c.Method() != fiber.MethodGet && c.Method() != fiber.MethodHead && c.Method() != fiber.MethodOptions
	if changes && !call.DryRun && (call.proved || c.Response().StatusCode() < fiber.StatusBadRequest) {
		level = slog.LevelInfo
	}
	if !s.log.Enabled(c.Context(), level) {
		return
	}
	if s.requestLines.Take("requests", 1) > 0 {
		s.skipped.Add(1)
		return
	}
	args := []slog.Attr{
		slog.String("method", c.Method()), slog.String("path", v1.MaskTokens(c.Path())), slog.Int("status", c.Response().StatusCode()),
		slog.String("address", s.ClientIP(c)), slog.String("request", call.ID), slog.Duration("took", took.Round(time.Microsecond)),
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
	if n := s.skipped.Swap(0); n > 0 {
		args = append(args, slog.Int64("skipped", n))
	}
	s.log.LogAttrs(c.Context(), level, "request", args...)
}
