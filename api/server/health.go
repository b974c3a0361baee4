package server

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/common/expfmt"

	"berth/api"
	v1 "berth/api/v1"
)

const metricsPath = "/metrics"

// health holds the handlers of the public routes and of /metrics.
type health struct{ *Server }

func (s health) routes() []route {
	metrics := node(get(metricsPath, v1.ScopeRead, s.getMetrics))
	metrics.anyAccept = true
	return []route{
		open(get("/api/v1/public/ping", "", s.ping)),
		open(get("/healthz", "", s.healthz)),
		open(get("/readyz", "", s.readyz)),
		open(get("/openapi.yaml", "", s.document)),
		metrics,
	}
}

type statusBody struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

func (s health) ping(c *fiber.Ctx) error {
	return ok(c, statusBody{"ok", "berth is running"})
}

func (s health) healthz(c *fiber.Ctx) error { return ok(c, statusBody{Status: "ok"}) }

// readyz reports whether the daemon can carry out requests.
func (s health) readyz(c *fiber.Ctx) error {
	var reasons []string
	if s.deps.Ready != nil {
		reasons = s.deps.Ready()
	} else if err := s.store.Writable(); err != nil {
		reasons = []string{"store: not writable"}
	}
	if len(reasons) > 0 {
		return v1.Errorf(v1.Unavailable, "Not ready: %s", strings.Join(reasons, "; "))
	}
	return ok(c, statusBody{Status: "ok"})
}

func (s health) document(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/yaml")
	return c.Send(api.Document)
}

// getMetrics answers with all metrics in the Prometheus text format.
func (s health) getMetrics(c *fiber.Ctx) error {
	if s.deps.Gatherer == nil {
		return errUnavailable
	}
	families, err := s.deps.Gatherer.Gather()
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
