package server

import (
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"berth/api"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// health holds the handlers of the public routes and of /metrics.
type health struct {
	store    *store.Store
	ready    func() []string
	gatherer prometheus.Gatherer
}

type statusBody struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

func (s health) ping(c *fiber.Ctx) error {
	return edge.OK(c, statusBody{"ok", "berth is running"})
}

func (s health) healthz(c *fiber.Ctx) error { return edge.OK(c, statusBody{Status: "ok"}) }

// readyz reports whether the daemon can carry out requests.
func (s health) readyz(c *fiber.Ctx) error {
	var reasons []string
	if s.ready != nil {
		reasons = s.ready()
	} else if err := s.store.Writable(); err != nil {
		reasons = []string{"store: not writable"}
	}
	if len(reasons) > 0 {
		return v1.Errorf(v1.Unavailable, "Not ready: %s", strings.Join(reasons, "; "))
	}
	return edge.OK(c, statusBody{Status: "ok"})
}

func (s health) document(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/yaml")
	return c.Send(api.Document)
}

// metrics answers with all metrics in the Prometheus text format.
func (s health) metrics(c *fiber.Ctx) error {
	if s.gatherer == nil {
		return edge.ErrUnavailable
	}
	handler := promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return serve(c, handler)
}
