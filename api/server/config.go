package server

import (
	"log/slog"

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
func (s configuration) get(c *call) (any, error) {
	return s.settings.Current().Show(s.version, c.caller.Configured), nil
}

type reloadedBody struct {
	messageBody
	RestartRequired []string `json:"restart_required"`
}

func (s configuration) reload(c *call) (reloadedBody, error) {
	restart, err := s.settings.Reload()
	if err != nil {
		return reloadedBody{}, v1.Errorf(v1.InvalidRequest, "%s", err)
	}
	s.log.Info("the configuration was reloaded", slog.Any("restart_required", restart), slog.String("actor", c.actor().String()))
	return reloadedBody{messageBody{"Configuration reloaded"}, append([]string{}, restart...)}, nil
}
