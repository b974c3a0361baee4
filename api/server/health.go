package server

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

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
	families, err := s.gatherer.Gather()
	if err != nil && len(families) == 0 {
		return err
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return err
		}
	}
	c.Set(fiber.HeaderContentType, string(format))
	return c.Send(b.Bytes())
}
