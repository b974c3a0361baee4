package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestLoadPrecedence(t *testing.T) {
	path := writeFile(t, "authorization: {token: "+fileToken+"}\n"+
		"server: {host: 10.0.0.1, port: 1, body_limit: 2MiB}\nlog: {level: warn}\n")
	env := []string{"BERTH_CONFIG=" + path, "BERTH_SERVER_PORT=2", "BERTH_SERVER_BODY_LIMIT=3MiB",
		"BERTH_SERVER_ALLOWED_ORIGINS=https://a, https://b:8443", "BERTH_RECONCILE_BACKOFF_RESET_AFTER=1d",
		"BERTH_DOCKER_REGISTRIES=ghcr.io=me:pass:word,r.example:5000=you:key", "BERTH_METRICS_PUBLIC=true"}
	l := newTestLoader(t, "", env...)
	override(t, l, "server.port", "3")
	override(t, l, "reconcile.workers", "2")
	got, err := l.Load()
	require.NoError(t, err)
	c := got.Config
	require.Equal(t, "10.0.0.1", c.Server.Host)
	require.Equal(t, 3, c.Server.Port)
	require.Equal(t, 3*v1.MiB, c.Server.BodyLimit)
	require.Equal(t, "warn", c.Log.Level)
	require.Equal(t, 2, c.Reconcile.Workers)
	require.True(t, c.Metrics.Public)
	require.Equal(t, []string{"https://a", "https://b:8443"}, c.Server.AllowedOrigins)
	require.Equal(t, v1.Duration(24*time.Hour), c.Reconcile.Backoff.ResetAfter)
	require.Equal(t, map[string]v1.Registry{
		"ghcr.io":        {Username: "me", Password: "pass:word"},
		"r.example:5000": {Username: "you", Password: "key"},
	}, c.Docker.Registries)
}

func TestPath(t *testing.T) {
	require.Equal(t, "/etc/berth/berth.yaml", newTestLoader(t, "").Path())
	require.Equal(t, "/e", newTestLoader(t, "", "BERTH_CONFIG=/e").Path())
	require.Equal(t, "/f", newTestLoader(t, "/f", "BERTH_CONFIG=/e").Path())
}

func TestDataPath(t *testing.T) {
	l := &Loader{env: map[string]string{"HOME": "/home/me"}}
	require.Equal(t, "/home/me/.local/share/berth", l.DataPath())
	l.env["XDG_DATA_HOME"] = "/x"
	require.Equal(t, "/x/berth", l.DataPath())
	l.root = true
	require.Equal(t, "/var/lib/berth", l.DataPath())
}

func TestLoadEmptyValues(t *testing.T) {
	path := writeFile(t, "server:\n  port:\n  allowed_origins:\ndocker:\nauthorization: {token: "+fileToken+"}\n")
	got, err := newTestLoader(t, path).Load()
	require.NoError(t, err)
	require.Equal(t, 8070, got.Config.Server.Port)
	require.Equal(t, int64(512), got.Config.Docker.PidsLimit)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLoadWarnsOfLooseMode(t *testing.T) {
	path := writeFile(t, "authorization: {token: "+fileToken+"}")
	require.NoError(t, os.Chmod(path, 0o644))
	got, err := newTestLoader(t, path).Load()
	require.NoError(t, err)
	require.Len(t, got.Warnings, 1)
	require.Contains(t, got.Warnings[0], "0644")
}

func TestLoadOrWriteOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.yaml")
	l := newTestLoader(t, path)
	first, written, err := l.LoadOrWrite()
	require.NoError(t, err)
	require.True(t, written)
	again, written, err := l.LoadOrWrite()
	require.NoError(t, err)
	require.False(t, written)
	require.Equal(t, first.Config.Authorization.Token, again.Config.Authorization.Token)
}

func TestLoadOrWriteReadOnly(t *testing.T) {
	path := "/proc/none/berth.yaml"
	_, _, err := newTestLoader(t, path).LoadOrWrite()
	require.ErrorContains(t, err, "authorization.token")
	require.ErrorContains(t, err, "name a place for it with --config or BERTH_CONFIG")
	env := []string{"BERTH_AUTHORIZATION_TOKEN=" + fileToken}
	got, written, err := newTestLoader(t, path, env...).LoadOrWrite()
	require.NoError(t, err)
	require.False(t, written)
	require.Len(t, got.Warnings, 1)
}
