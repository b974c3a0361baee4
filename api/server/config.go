package server

import (
	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// configuration holds the handlers for the daemon's configuration.
type configuration struct{ *Server }

func (s configuration) routes() []route {
	return []route{
		node(get("/remote/config", v1.ScopeAdmin, s.getConfig)),
		node(post("/remote/config/reload", v1.ScopeAdmin, s.reloadConfig)),
	}
}

// getConfig answers with the configuration. The configured token sees secrets in
// clear; minted tokens see them masked, whatever their scopes.
func (s configuration) getConfig(c *fiber.Ctx) error {
	return ok(c, s.settings.Current().Show(s.deps.Version, callerOf(c).Configured))
}

func (s configuration) reloadConfig(c *fiber.Ctx) error {
	restart, err := s.settings.Reload()
	if err != nil {
		return v1.Errorf(v1.InvalidRequest, "%s", err)
	}
	return ok(c, struct {
		messageBody
		RestartRequired []string `json:"restart_required"`
	}{messageBody{"Configuration reloaded"}, append([]string{}, restart...)})
}
