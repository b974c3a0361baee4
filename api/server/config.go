package server

import (
	"log/slog"

	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	v1 "berth/api/v1"
)

// configuration holds the handlers for the daemon's configuration.
type configuration struct {
	settings Settings
	version  string
	log      *slog.Logger
}

// get answers with the configuration. The configured token sees secrets in
// clear; minted tokens see them masked, whatever their scopes.
func (s configuration) get(c *fiber.Ctx) error {
	return edge.OK(c, s.settings.Current().Show(s.version, callerOf(c).Configured))
}

func (s configuration) reload(c *fiber.Ctx) error {
	restart, err := s.settings.Reload()
	if err != nil {
		return v1.Errorf(v1.InvalidRequest, "%s", err)
	}
	s.log.Info("the configuration was reloaded", slog.Any("restart_required", restart), slog.String("actor", edge.Actor(c).String()))
	return edge.OK(c, struct {
		messageBody
		RestartRequired []string `json:"restart_required"`
	}{messageBody{"Configuration reloaded"}, append([]string{}, restart...)})
}
