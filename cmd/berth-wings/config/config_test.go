package config_test

import (
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
	"berth/hack/test/paneltest"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const least = "token_id: id\ntoken: secret\nremote: https://panel.test\n"

func TestLoad(t *testing.T) {
	f, err := config.Load(write(t, least+"api: {port: 9, trusted_proxies: [10.0.0.0/8, 192.0.2.1], ssl: {enabled: true}}\n"+
		"docker: {network: {name: x}, overhead: {override: true, multipliers: {2048: 1.5}}}\nthrottles: {enabled: true}\nsystem: {sftp: {bind_port: 1}, user: {uid: 5}}\n"), nil)
	require.NoError(t, err)
	c := f.Config
	require.Equal(t, []string{"docker.network", "throttles"}, f.Unused)
	require.Equal(t, 9, c.API.Port)
	require.Equal(t, "0.0.0.0", c.API.Host, "a default")
	require.True(t, c.API.SSL.Enabled)
	require.Equal(t, 5, c.System.User.UID)
	require.Equal(t, 988, c.System.User.GID)
	require.InDelta(t, 1.5, c.Docker.Overhead.Multipliers["2048"], 0)
	for address, trusted := range map[string]bool{"10.1.2.3": true, "::ffff:192.0.2.1": true, "192.0.2.2": false} {
		require.Equal(t, trusted, c.API.Trusts(netip.MustParseAddr(address)), address)
	}
	require.NotContains(t, c.Token.String(), "secret")
}

func TestSecretsOfTheFile(t *testing.T) {
	secret := write(t, "of a file\nsecond line\n")
	for text, want := range map[string]string{"plain": "plain", "$IN_ENV": "of env", "file://" + secret: "of a file", "file://${DIR}/config.yml": "of a file"} {
		f, err := config.Load(write(t, "token_id: id\nremote: https://p\ntoken: \""+text+"\"\n"), []string{"IN_ENV=of env", "DIR=" + filepath.Dir(secret)})
		require.NoError(t, err)
		require.Equal(t, want, f.Config.Token.Reveal())
	}
	f, err := config.Load(write(t, least), []string{"WINGS_TOKEN=first", "WINGS_TOKEN_ID=too"})
	require.NoError(t, err)
	require.Equal(t, "first", f.Config.Token.Reveal())
	require.Equal(t, "too", f.Config.TokenID)
}

func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "token_id and token are required", "token_id: a\ntoken: b\nremote: panel\n": "is not an address", least + "remote2: [\n": "config.yml",
		strings.Replace(least, ".test", ".test/", 1): "must not end with a slash", least + "api: {port: 0}": "api.port", least + "api: {port: text}": "api.port",
		least + "api: {trusted_proxies: [x]}": "api.trusted_proxies", least + "system: {timezone: Moon}": "system.timezone", least + "api: {upload_limit: 0}": "api.upload_limit",
		least + "remote_query: {timeout: 0}": "remote_query.timeout", least + "system: {activity_send_count: 101}": "activity_send_count",
		least + "system: {websocket_log_count: -1}": "websocket_log_count", least + "#" + strings.Repeat("x", 1<<20): "larger",
	} {
		_, err := config.Load(write(t, text), nil)
		require.ErrorContains(t, err, want)
	}
}

// TestUpdate: what the panel sends replaces the file, except for what is the node's own.
func TestUpdate(t *testing.T) {
	path := write(t, least+"allowed_mounts: [/srv]\nthrottles: {lines: 5}\napi: {port: 9, ssl: {cert: /own/cert, key: /own/key}}\nsystem: {data: /own, sftp: {bind_port: 1}}\n")
	f, err := config.Load(path, nil)
	require.NoError(t, err)
	next, err := f.Update([]byte(`{"token": "newer", "remote": "http://evil", "allowed_mounts": ["/"], "api": {"port": 10, "ssl": {"enabled": true,
		"cert": "/etc/letsencrypt/live/x/c", "key": "/etc/letsencrypt/live/x/k"}}, "system": {"data": "/", "root_directory": "/", "backup_directory": "/", "sftp": {"bind_port": 2}}}`), nil)
	require.NoError(t, err)
	require.NoError(t, next.Save())
	again, err := config.Load(path, nil)
	require.NoError(t, err)
	c := again.Config
	require.Equal(t, next.Config, c)
	require.Equal(t, "newer", c.Token.Reveal())
	require.Equal(t, "https://panel.test", c.Remote)
	require.Equal(t, []string{"/srv"}, c.AllowedMounts)
	require.Equal(t, "/own/cert", c.API.SSL.Cert)
	require.Equal(t, "/var/lib/pelican", c.System.RootDirectory)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "lines: 5", "a key that the bridge does not use")
	require.Contains(t, string(text), "bind_port: 2")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Equal(t, "secret", f.Config.Token.Reveal(), "the old one is as it was")
	_, err = f.Update([]byte(`{"token": ""}`), nil)
	require.ErrorContains(t, err, "token")
}

func TestConfigure(t *testing.T) {
	p := paneltest.Start(t)
	path := filepath.Join(t.TempDir(), "etc", "config.yml")
	s := config.Setup{Panel: p.URL + "/", Key: paneltest.Key, Node: 1, Path: path}
	require.NoError(t, config.Configure(t.Context(), s, http.DefaultClient))
	f, err := config.Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, p.URL, f.Config.Remote)
	require.Equal(t, paneltest.Token, f.Config.Token.Reveal())
	require.Equal(t, int64(1), f.Config.API.UploadLimit)
	require.Empty(t, f.Config.AllowedMounts)
	refused := func(want string, change func(*config.Setup)) {
		t.Helper()
		wrong := s
		change(&wrong)
		require.ErrorContains(t, config.Configure(t.Context(), wrong, http.DefaultClient), want)
	}
	refused("replace it with --override", func(*config.Setup) {})
	s.Override = true
	require.NoError(t, config.Configure(t.Context(), s, http.DefaultClient))
	refused("it has no node 2", func(s *config.Setup) { s.Node = 2 })
	refused("the key is wrong", func(s *config.Setup) { s.Key = v1.Secret("ptla_" + paneltest.Key[5:]) })
	refused("not an application key", func(s *config.Setup) { s.Key = v1.Secret("ptlc_" + paneltest.Key[5:]) })
	refused("is not an address", func(s *config.Setup) { s.Panel = "panel.test" })
}
