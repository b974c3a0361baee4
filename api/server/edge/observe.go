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

// observe is the outermost middleware. It assigns the request id, answers the errors
// and panics of those within it, records the duration, writes the log, and prepares the connection for the next
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
	err := s.Recovered(c, c.Next)
	if err != nil {
		err = s.Fail(c, err)
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

// Recovered returns the error of handle, or the one of an internal error if it panics.
func (s *Server) Recovered(c *fiber.Ctx, handle func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("handler panicked", slog.String("request", CallOf(c).ID),
				slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
			err = errInternal
		}
	}()
	return handle()
}

// logRequest logs an answered request: at info if it may have changed something, and was neither a dry
// run nor without a valid token, else at debug. The line has the path without its query, which may contain a
// token. Lines of a tenant beyond limit.RequestLines are counted in its next.
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
	skipped, listed := s.requestLines.List("of " + call.tenant)
	if !listed {
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
	if skipped > 0 {
		args = append(args, slog.Int("skipped", skipped))
	}
	s.log.LogAttrs(c.Context(), level, "request", args...)
}
