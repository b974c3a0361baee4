package server

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	duration *prometheus.HistogramVec
	failures prometheus.Counter
	sockets  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "berth_http_request_duration_seconds",
			Help:    "Time from the headers of a request to its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"route", "code"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_auth_failures_total",
			Help: "Requests with a missing or invalid token.",
		}),
		sockets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "berth_websocket_connections",
			Help: "Open WebSocket connections.",
		}),
	}
	r.MustRegister(m.duration, m.failures, m.sockets)
	return m
}

// requestName is the form of an X-Request-Id that is accepted from clients.
var requestName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// requestID returns the id of a request, the one in the log and in X-Request-Id.
func requestID(c *fiber.Ctx) string {
	id, _ := c.Locals(requestKey).(string)
	return id
}

func newRequestID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails, as its documentation says
	return hex.EncodeToString(b[:])
}

// observe is the outermost middleware. It assigns the request id, answers errors
// and panics, records the duration, and prepares the connection for the next
// request.
func (s *Server) observe(c *fiber.Ctx) error {
	began := time.Now()
	id := c.Get("X-Request-Id")
	if !requestName.MatchString(id) {
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
	if passed, _ := c.Locals(continueKey).(bool); passed {
		return err // the request runs a second time, with its body
	}
	held, _ := c.Locals(bodyKey).(*reservation)
	held.release()
	drain(c)
	name, matched := c.Locals(routeKey).(string)
	if !matched {
		name = "none"
	}
	s.metrics.duration.WithLabelValues(name, strconv.Itoa(c.Response().StatusCode())).Observe(time.Since(began).Seconds())
	return err
}

// recovered calls the next handler, and turns a panic into errInternal.
func (s *Server) recovered(c *fiber.Ctx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("handler panicked", slog.String("request", requestID(c)),
				slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
			err = errInternal
		}
	}()
	return c.Next()
}
