package server

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestConfigMasksSecrets(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.Remote.Token = "panel-secret" })
	a := h.must("GET", "/remote/config", nil)
	require.Contains(t, a.raw, adminToken)
	require.Contains(t, a.raw, "panel-secret")
	a = h.do(request{method: "GET", path: "/remote/config", token: h.mint(object{"scopes": []string{"admin"}})})
	require.Equal(t, 200, a.status)
	require.NotContains(t, a.raw, adminToken)
	require.NotContains(t, a.raw, "panel-secret")
	require.Equal(t, "***", a.json["authorization"].(map[string]any)["token"])
	require.Equal(t, "***", a.json["remote"].(map[string]any)["token"])
	h.settings.change(func(c *v1.Config) { c.Authorization.Enabled = false })
	require.NotContains(t, h.do(request{method: "GET", path: "/remote/config", token: "-"}).raw, adminToken, "nobody presented it")
	require.Contains(t, h.must("GET", "/remote/config", nil).raw, adminToken)
}

func TestConfiguration(t *testing.T) {
	log := &lines{}
	h := newHarnessWith(t, func(d *Deps) { d.Log = slog.New(slog.NewTextHandler(log, nil)) })
	h.settings.change(func(c *v1.Config) {
		c.Remote = v1.RemoteConfig{Enabled: true, URL: "http://panel", Token: "berth_x"}
	})
	a := h.must("GET", "/remote/config", nil)
	require.JSONEq(t, `{"version":"1.2.3","server":{"host":"0.0.0.0","port":8070},"authorization":{"enabled":true,"token":"`+adminToken+`"},
		"remote":{"enabled":true,"url":"http://panel","token":"berth_x"}}`, a.raw)
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	h.settings.reload = func() ([]string, error) { return []string{"server.port"}, nil }
	require.JSONEq(t, `{"message":"Configuration reloaded","restart_required":["server.port"]}`, h.must("POST", "/remote/config/reload", nil).raw)
	require.Contains(t, log.String(), `msg="the configuration was reloaded" restart_required=[server.port] actor=administrator`)
	h.settings.reload = func() ([]string, error) { return nil, nil }
	require.Equal(t, []any{}, h.must("POST", "/remote/config/reload", nil).json["restart_required"])
	h.settings.reload = func() ([]string, error) { return nil, errors.New("server.port: must be between 0 and 65535") }
	h.refuse(400, "server.port: must be between 0 and 65535", "POST", "/remote/config/reload", nil)
}
