package server

import (
	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

func (s *Server) configRoutes() []route {
	return []route{
		node(get("/remote/config", v1.ScopeAdmin, s.getConfig)),
		node(post("/remote/config/reload", v1.ScopeAdmin, s.reloadConfig)),
	}
}

// getConfig tells the configuration, tokens in clear.
func (s *Server) getConfig(c *fiber.Ctx) error {
	return ok(c, s.settings.Current().Show(s.deps.Version))
}

func (s *Server) reloadConfig(c *fiber.Ctx) error {
	restart, err := s.settings.Reload()
	if err != nil {
		return v1.Errorf(v1.InvalidRequest, "%s", err)
	}
	return ok(c, struct {
		messageBody
		RestartRequired []string `json:"restart_required"`
	}{messageBody{"Configuration reloaded"}, append([]string{}, restart...)})
}
