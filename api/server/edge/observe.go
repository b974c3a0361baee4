package edge

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
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
	c.Locals(requestKey, id)
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
	if leave, held := c.Locals(bodyKey).(func()); held {
		leave()
	}
	drain(c)
	name, matched := c.Locals(routeKey).(string)
	if !matched {
		name = "none"
	}
	took := time.Since(began)
	s.duration.WithLabelValues(name, strconv.Itoa(c.Response().StatusCode())).Observe(took.Seconds())
	s.requests.write(c, s.ClientIP, took)
	return err
}

// recovered calls the next handler, and turns a panic into errInternal.
func (s *Server) recovered(c *fiber.Ctx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("handler panicked", slog.String("request", RequestID(c)),
				slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
			err = errInternal
		}
	}()
	return c.Next()
}
