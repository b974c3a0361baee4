package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

const fileToken = "berth_00000000000000000000000000000001"

// writeFile writes a configuration and returns its path.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// newTestLoader returns a loader with this --config and environment.
func newTestLoader(t *testing.T, file string, env ...string) *Loader {
	t.Helper()
	l := NewLoader(env)
	l.File = file
	return l
}

// override gives l a flag.
func override(t *testing.T, l *Loader, key, text string) {
	t.Helper()
	for _, o := range l.Overrides() {
		if o.Name == key {
			require.NoError(t, o.Set(text))
			require.Equal(t, text, o.String())
			return
		}
	}
	t.Fatalf("%s has no flag", key)
}

// faultKeys returns the keys of the errors of Load.
func faultKeys(t *testing.T, l *Loader) []string {
	t.Helper()
	_, err := l.Load()
	var faults v1.FieldErrors
	require.ErrorAs(t, err, &faults)
	keys := make([]string, len(faults))
	for i := range faults {
		keys[i] = faults[i].Key
	}
	return keys
}

func TestWriteDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etc", "berth", "berth.yaml")
	l := newTestLoader(t, path)
	require.NoError(t, Write(path, l.DataPath(), false))
	got, err := l.Load()
	require.NoError(t, err)
	require.Empty(t, got.Warnings)

	want := v1.Defaults()
	want.Storage.DataPath = l.DataPath()
	want.Complete()
	require.True(t, v1.IsToken(got.Config.Authorization.Token.Reveal()))
	want.Authorization.Token = got.Config.Authorization.Token
	for w := range Keys(&want) {
		for g := range Keys(&got.Config) {
			require.True(t, w.Name != g.Name || equal(w.value, g.value), "%s: %v, not %v", g.Name, g.value, w.value)
		}
	}
	for l := range Keys(&want) {
		name := l.Name[strings.LastIndexByte(l.Name, '.')+1:]
		require.Contains(t, template, " "+name+":", "the file shows every key")
	}
}

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

func TestEnvironmentSetsEveryKey(t *testing.T) {
	values := map[string]string{"int": "7", "int64": "7", "bool": "true", "slice": "a,b",
		"map": "h=u:p", "string": "text", "v1.Size": "7KiB", "v1.Duration": "7h"}
	l := &Loader{env: map[string]string{}}
	for key := range Keys(new(v1.Config)) {
		value, ok := values[key.value.Type().String()]
		if !ok {
			value = values[key.value.Kind().String()]
		}
		l.env[envName(key.Name)] = value
	}
	var c v1.Config
	require.Empty(t, l.overlay(&c))
	for key := range Keys(&c) {
		require.False(t, key.value.IsZero(), key.Name)
	}
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

// badFile is a configuration, and the keys of its errors.
type badFile struct {
	text string
	keys []string
}

func badFiles() []badFile {
	return []badFile{
		{"servr: {}", []string{"servr"}},
		{"server: {prot: 1}", []string{"server.prot"}},
		{"server: 1", []string{"server"}},
		{"server: [1]", []string{"server"}},
		{"- a", []string{""}},
		{"a: b: c", []string{""}},
		{"server: {port: x}", []string{"server.port"}},
		{"server: {port: 1.5}", []string{"server.port"}},
		{"server: {port: [1]}", []string{"server.port"}},
		{"server: {port: 1, port: 2}", []string{"server.port"}},
		{"server: {port: 70000}", []string{"server.port"}},
		{"server: {allowed_origins: https://a}", []string{"server.allowed_origins"}},
		{"server: {allowed_origins: [[a]]}", []string{"server.allowed_origins[0]"}},
		{"server: {tls: {cert: /none, key: /none}}", []string{"server.tls"}},
		{"metrics: {public: 1}", []string{"metrics.public"}},
		{"events: {retention: 7}", []string{"events.retention"}},
		{"server: {body_limit: lots}", []string{"server.body_limit"}},
		{"docker: {registries: {h: {user: a}}}", []string{"docker.registries.h.user", "docker.registries.h"}},
		{"docker: {registries: [a]}", []string{"docker.registries"}},
		{"server: {}\n---\nserver: {}", []string{""}},
		{"log: {level: loud}\nevents: {max: 0}\nfirewall: {backend: ufw}", []string{"firewall.backend", "events.max", "log.level"}},
		{"log: &l {level: info}\nmetrics: *l", []string{"metrics"}},
	}
}

func TestLoadNamesEveryError(t *testing.T) {
	for _, row := range badFiles() {
		l := newTestLoader(t, writeFile(t, row.text), "BERTH_AUTHORIZATION_TOKEN="+fileToken)
		require.Equal(t, row.keys, faultKeys(t, l), row.text)
	}
}

func TestLoadEmptyValues(t *testing.T) {
	path := writeFile(t, "server:\n  port:\n  allowed_origins:\ndocker:\nauthorization: {token: "+fileToken+"}\n")
	got, err := newTestLoader(t, path).Load()
	require.NoError(t, err)
	require.Equal(t, 8070, got.Config.Server.Port)
	require.Equal(t, int64(512), got.Config.Docker.PidsLimit)
}

func TestEnvironmentErrors(t *testing.T) {
	env := []string{"BERTH_AUTHORIZATION_TOKEN=" + fileToken, "BERTH_SERVER_PROT=1", "BERTH_URL=http://x",
		"BERTH_METRICS_PUBLIC=", "BERTH_SERVER_PORT=tcp://1.2.3.4:8070"}
	l := newTestLoader(t, writeFile(t, ""), env...)
	_, err := l.Load()
	require.ErrorContains(t, err, "BERTH_SERVER_PROT in the environment is not a key")
	require.Equal(t, []string{"", "server.port", "metrics.public"}, faultKeys(t, l))
}

func TestSecretsAreNeitherFlagsNorInErrors(t *testing.T) {
	flags := map[string]bool{}
	for _, o := range NewLoader(nil).Overrides() {
		flags[o.Name] = true
	}
	require.True(t, flags["server.port"])
	for _, key := range []string{"authorization.token", "remote.token", "docker.registries"} {
		require.False(t, flags[key], key)
	}
	const secret = "top-secret-value"
	for key := range Keys(new(v1.Config)) {
		section, name, _ := strings.Cut(key.Name, ".")
		text := section + ":\n  " + strings.ReplaceAll(name, ".", ":\n    ") + ": " + secret + "\n"
		_, err := newTestLoader(t, writeFile(t, text), envName(key.Name)+"="+secret).Load()
		require.NotContains(t, errText(err), secret, key.Name)
	}
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
