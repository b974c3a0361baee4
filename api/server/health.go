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
	Status string `json:"status"`
}

type pingBody struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func (s health) ping(*call) (pingBody, error) { return pingBody{"ok", "berth is running"}, nil }

func (s health) healthz(*call) (statusBody, error) { return statusBody{"ok"}, nil }

// readyz reports whether the daemon can carry out requests.
func (s health) readyz(*call) (statusBody, error) {
	var reasons []string
	if s.ready != nil {
		reasons = s.ready()
	} else if err := s.store.Writable(); err != nil {
		reasons = []string{"store: not writable"}
	}
	if len(reasons) > 0 {
		return statusBody{}, v1.Errorf(v1.Unavailable, "Not ready: %s", strings.Join(reasons, "; "))
	}
	return statusBody{"ok"}, nil
}

func (s health) document(c *call) error {
	c.Set(fiber.HeaderContentType, "application/yaml")
	return c.Send(api.Document)
}

// metrics answers with all metrics in the Prometheus text format.
func (s health) metrics(c *call) error {
	if s.gatherer == nil {
		return edge.ErrUnavailable
	}
	handler := promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return serve(c, handler)
}
