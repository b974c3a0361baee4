package v1

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const testToken = "berth_0123456789abcdef0123456789abcdef"

// valid returns a valid configuration.
func valid() Config {
	c := Defaults()
	c.Authorization.Token = testToken
	c.Complete()
	return c
}

func TestDefaultsNeedOnlyToken(t *testing.T) {
	require.NoError(t, valid().Validate().Err())
	c := Defaults()
	c.Complete()
	require.Len(t, c.Validate(), 1)
	require.Equal(t, "authorization.token", c.Validate()[0].Key)
	require.Equal(t, "/var/lib/berth/volumes", c.Storage.VolumesPath)
}

// faults has a row for each bad input of each key.
var faults = []struct {
	key    string
	change func(*Config)
}{
	{"server.host", func(c *Config) { c.Server.Host = "" }},
	{"server.host", func(c *Config) { c.Server.Host = "a b" }},
	{"server.host", func(c *Config) { c.Server.Host = "[::1]" }},
	{"server.port", func(c *Config) { c.Server.Port = -1 }},
	{"server.port", func(c *Config) { c.Server.Port = 65536 }},
	{"server.body_limit", func(c *Config) { c.Server.BodyLimit = 1023 }},
	{"server.body_limit", func(c *Config) { c.Server.BodyLimit = GiB + 1 }},
	{"server.tls.cert", func(c *Config) { c.Server.TLS.Key = "/k" }},
	{"server.tls.key", func(c *Config) { c.Server.TLS.Cert = "/c" }},
	{"server.allowed_origins[0]", func(c *Config) { c.Server.AllowedOrigins = []string{"*"} }},
	{"server.allowed_origins[0]", func(c *Config) { c.Server.AllowedOrigins = []string{"https://a/"} }},
	{"server.allowed_origins[1]", func(c *Config) { c.Server.AllowedOrigins = []string{"https://a", "a.b"} }},
	{"server.trusted_proxies[0]", func(c *Config) { c.Server.TrustedProxies = []string{"10.0.0.1"} }},
	{"authorization.token", func(c *Config) { c.Authorization.Token = "" }},
	{"authorization.token", func(c *Config) { c.Authorization.Token = "secret" }},
	{"authorization.token", func(c *Config) { c.Authorization.Token = Secret(strings.ToUpper(testToken)) }},
	{"authorization.max_ttl", func(c *Config) { c.Authorization.MaxTTL = 0 }},
	{"authorization.max_ttl", func(c *Config) { c.Authorization.MaxTTL = -1 }},
	{"authorization.enabled", func(c *Config) { c.Authorization.Enabled = false }},
	{"authorization.enabled", func(c *Config) { c.Authorization.Enabled = false; c.Server.Host = "::" }},
	{"authorization.enabled", func(c *Config) { c.Authorization.Enabled = false; c.Server.Host = "panel.example" }},
	{"remote.url", func(c *Config) { c.Remote = RemoteConfig{Enabled: true, Token: "t"} }},
	{"remote.url", func(c *Config) { c.Remote.URL = "panel" }},
	{"remote.url", func(c *Config) { c.Remote.URL = "ftp://panel/x" }},
	{"remote.url", func(c *Config) { c.Remote.URL = "http://me:word@panel/" }},
	{"remote.url", func(c *Config) { c.Remote.URL = "http://" }},
	{"remote.token", func(c *Config) { c.Remote = RemoteConfig{Enabled: true, URL: "http://panel"} }},
	{"remote.token", func(c *Config) { c.Remote.Token = "a\nb" }},
	{"remote.node", func(c *Config) { c.Remote.Node = strings.Repeat("n", 254) }},
	{"storage.data_path", func(c *Config) { c.Storage.DataPath = "data" }},
	{"storage.data_path", func(c *Config) { c.Storage.DataPath = "/" }},
	{"storage.volumes_path", func(c *Config) { c.Storage.VolumesPath = "/.." }},
	{"storage.volumes_path", func(c *Config) { c.Storage.VolumesPath = "/a\x00b" }},
	{"storage.max_file_size", func(c *Config) { c.Storage.MaxFileSize = 0 }},
	{"storage.hard_limit", func(c *Config) { c.Storage.HardLimit = "some" }},
	{"storage.max_extract_size", func(c *Config) { c.Storage.MaxExtractSize = -1 }},
	{"storage.uid", func(c *Config) { c.Storage.UID = -2 }},
	{"storage.gid", func(c *Config) { c.Storage.GID = 1<<32 - 1 }},
	{"docker.host", func(c *Config) { c.Docker.Host = "docker.sock" }},
	{"docker.host", func(c *Config) { c.Docker.Host = "unix://run/docker.sock" }},
	{"docker.host", func(c *Config) { c.Docker.Host = "tcp://" }},
	{"docker.host", func(c *Config) { c.Docker.Host = "ssh://root@host" }},
	{"docker.nofile_limit", func(c *Config) { c.Docker.NofileLimit = 10 }},
	{"docker.allowed_mounts[0]", func(c *Config) { c.Docker.AllowedMounts = []string{"/"} }},
	{"docker.registries.ghcr.io", func(c *Config) { c.Docker.Registries = map[string]Registry{"ghcr.io": {Username: "u"}} }},
	{"docker.registries.https://x", func(c *Config) {
		c.Docker.Registries = map[string]Registry{"https://x": {Username: "u", Password: "p"}}
	}},
	{"docker.network", func(c *Config) { c.Docker.Network = "-x" }},
	{"docker.network", func(c *Config) { c.Docker.Network = "host" }},
	{"docker.pids_limit", func(c *Config) { c.Docker.PidsLimit = 0 }},
	{"docker.root_limit", func(c *Config) { c.Docker.RootLimit = KiB }},
	{"docker.log_max_size", func(c *Config) { c.Docker.LogMaxSize = KiB }},
	{"docker.log_max_files", func(c *Config) { c.Docker.LogMaxFiles = 0 }},
	{"firewall.backend", func(c *Config) { c.Firewall.Backend = "nft" }},
	{"reconcile.workers", func(c *Config) { c.Reconcile.Workers = 0 }},
	{"reconcile.resync", func(c *Config) { c.Reconcile.Resync = Duration(time.Millisecond) }},
	{"reconcile.create_wait", func(c *Config) { c.Reconcile.CreateWait = -1 }},
	{"reconcile.backoff.initial", func(c *Config) { c.Reconcile.Backoff.Initial = 0 }},
	{"reconcile.backoff.max", func(c *Config) { c.Reconcile.Backoff.Max = 1 }},
	{"reconcile.backoff.reset_after", func(c *Config) { c.Reconcile.Backoff.ResetAfter = 0 }},
	{"events.retention", func(c *Config) { c.Events.Retention = 1 }},
	{"events.max", func(c *Config) { c.Events.Max = 0 }},
	{"log.level", func(c *Config) { c.Log.Level = "trace" }},
	{"log.format", func(c *Config) { c.Log.Format = "" }},
}

func TestValidateReportsEachError(t *testing.T) {
	for i, f := range faults {
		t.Run(fmt.Sprint(i, f.key), func(t *testing.T) {
			c := valid()
			f.change(&c)
			got := c.Validate()
			require.Len(t, got, 1, "%v", got)
			require.Equal(t, f.key, got[0].Key)
		})
	}
}

func TestValidateReportsAllErrors(t *testing.T) {
	got := Config{}.Validate()
	require.Greater(t, len(got), 15)
	require.ErrorContains(t, got.Err(), "; log.format: must be one of")
}

func TestDisabledAuthorizationNeedsLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "127.8.8.8", "::1", "localhost", "::ffff:127.0.0.1"} {
		c := valid()
		c.Authorization.Enabled, c.Server.Host = false, host
		require.Empty(t, c.Validate(), host)
	}
	c := valid()
	c.Authorization.Enabled, c.Authorization.AllowInsecure, c.Authorization.Token = false, true, ""
	require.Empty(t, c.Validate())
}

func TestConfigHidesSecrets(t *testing.T) {
	c := valid()
	c.Remote.Token = "panel-secret"
	c.Docker.Registries = map[string]Registry{"ghcr.io": {Username: "u", Password: "pass-word"}}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "config", c, "shown", fmt.Sprintf("%v %+v %#v", c, c.Show("1.2.3", true), c))
	masked, err := json.Marshal(c)
	require.NoError(t, err)
	for _, secret := range []string{testToken, "panel-secret", "pass-word"} {
		require.NotContains(t, logged.String()+string(masked), secret)
	}
	shown, err := json.Marshal(c.Show("1.2.3", true))
	require.NoError(t, err)
	require.JSONEq(t, `{"version":"1.2.3","server":{"host":"0.0.0.0","port":8070},
		"authorization":{"enabled":true,"token":"`+testToken+`"},
		"remote":{"enabled":false,"url":"","token":"panel-secret"}}`, string(shown))
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "17": 17, "17B": 17, "1KiB": 1024, "1MiB": MiB, "1.5GiB": 3 * GiB / 2, "2 TiB": 2 * TiB,
		"1kB": 1000, "1MB": 1e6, "10GB": 1e10, "512k": 512 * KiB, "3M": 3 * MiB,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseSize(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	for _, text := range []string{"", "MiB", "-1", "1e3", "0x10", "NaN", "Inf", "1XB", "9999999TiB", "1 2", "1MiBs"} {
		_, err := ParseSize(text)
		require.Error(t, err, text)
	}
}

func TestSizeInJSON(t *testing.T) {
	var got []Size
	require.NoError(t, json.Unmarshal([]byte(`["1MiB", 2048, "7"]`), &got))
	require.Equal(t, []Size{MiB, 2 * KiB, 7}, got)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `["1MiB","2KiB","7"]`, string(b))
	require.Error(t, json.Unmarshal([]byte(`[true]`), &got))
}
