package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

const fileToken = "berth_00000000000000000000000000000001"

// writeFile writes a configuration of its own to a test.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// newTestLoader is a loader as main makes it, given arguments and environment.
func newTestLoader(t *testing.T, env []string, args ...string) *loader {
	t.Helper()
	cmd := &cobra.Command{Use: "berth", RunE: func(*cobra.Command, []string) error { return nil }}
	l := newLoader(cmd, env)
	l.keyFlags(cmd)
	cmd.SetArgs(args)
	require.NoError(t, cmd.Execute())
	return l
}

// faultKeys is the keys of the faults of a load.
func faultKeys(t *testing.T, l *loader) []string {
	t.Helper()
	_, err := l.load()
	var faults v1.FieldErrors
	require.ErrorAs(t, err, &faults)
	keys := make([]string, len(faults))
	for i := range faults {
		keys[i] = faults[i].Key
	}
	return keys
}

func TestWhatInitWritesIsTheDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etc", "berth", "berth.yaml")
	l := newTestLoader(t, nil, "--config", path)
	require.NoError(t, writeConfig(path, l.dataPath(), false))
	got, err := l.load()
	require.NoError(t, err)
	require.Empty(t, got.warnings)

	want := v1.Defaults()
	want.Storage.DataPath = l.dataPath()
	want.Complete()
	require.True(t, v1.IsToken(got.config.Authorization.Token.Reveal()))
	want.Authorization.Token = got.config.Authorization.Token
	for w := range leaves(&want) {
		for g := range leaves(&got.config) {
			require.True(t, w.key != g.key || equal(w.value, g.value), "%s: %v, not %v", g.key, g.value, w.value)
		}
	}
	for l := range leaves(&want) {
		name := l.key[strings.LastIndexByte(l.key, '.')+1:]
		require.Contains(t, configTemplate, " "+name+":", "the file shows every key")
	}
}

func TestFlagsWinOverEnvironmentOverFileOverDefaults(t *testing.T) {
	path := writeFile(t, "authorization: {token: "+fileToken+"}\n"+
		"server: {host: 10.0.0.1, port: 1, body_limit: 2MiB}\nlog: {level: warn}\n")
	env := []string{"BERTH_CONFIG=" + path, "BERTH_SERVER_PORT=2", "BERTH_SERVER_BODY_LIMIT=3MiB",
		"BERTH_SERVER_ALLOWED_ORIGINS=https://a, https://b:8443", "BERTH_RECONCILE_BACKOFF_RESET_AFTER=1d",
		"BERTH_DOCKER_REGISTRIES=ghcr.io=me:pass:word,r.example:5000=you:key", "BERTH_METRICS_PUBLIC=true"}
	got, err := newTestLoader(t, env, "--server.port=3", "--reconcile.workers", "2").load()
	require.NoError(t, err)
	c := got.config
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

func TestEveryKeyCanBeSetInTheEnvironment(t *testing.T) {
	values := map[string]string{"int": "7", "int64": "7", "bool": "true", "slice": "a,b",
		"map": "h=u:p", "string": "text", "v1.Size": "7KiB", "v1.Duration": "7h"}
	l := &loader{env: map[string]string{}}
	for key := range leaves(new(v1.Config)) {
		value, ok := values[key.value.Type().String()]
		if !ok {
			value = values[key.value.Kind().String()]
		}
		l.env[envName(key.key)] = value
	}
	var c v1.Config
	require.Empty(t, l.overlay(&c))
	for key := range leaves(&c) {
		require.False(t, key.value.IsZero(), key.key)
	}
}

func TestPathIsFlagThenEnvironmentThenDefault(t *testing.T) {
	require.Equal(t, "/etc/berth/berth.yaml", newTestLoader(t, nil).path())
	require.Equal(t, "/e", newTestLoader(t, []string{"BERTH_CONFIG=/e"}).path())
	require.Equal(t, "/f", newTestLoader(t, []string{"BERTH_CONFIG=/e"}, "--config=/f").path())
}

func TestDataPathOfOthersThanRoot(t *testing.T) {
	l := &loader{env: map[string]string{"HOME": "/home/me"}}
	require.Equal(t, "/home/me/.local/share/berth", l.dataPath())
	l.env["XDG_DATA_HOME"] = "/x"
	require.Equal(t, "/x/berth", l.dataPath())
	l.root = true
	require.Equal(t, "/var/lib/berth", l.dataPath())
}

// badFiles has the keys of the faults of each file.
var badFiles = []struct {
	text string
	keys []string
}{
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

func TestEveryFaultOfAFileIsNamed(t *testing.T) {
	for _, row := range badFiles {
		l := newTestLoader(t, []string{"BERTH_AUTHORIZATION_TOKEN=" + fileToken}, "--config", writeFile(t, row.text))
		require.Equal(t, row.keys, faultKeys(t, l), row.text)
	}
}

func TestEmptyValuesAreTheDefaults(t *testing.T) {
	path := writeFile(t, "server:\n  port:\n  allowed_origins:\ndocker:\nauthorization: {token: "+fileToken+"}\n")
	got, err := newTestLoader(t, nil, "--config", path).load()
	require.NoError(t, err)
	require.Equal(t, 8070, got.config.Server.Port)
	require.Equal(t, int64(512), got.config.Docker.PidsLimit)
}

func TestFaultsOfTheEnvironment(t *testing.T) {
	env := []string{"BERTH_AUTHORIZATION_TOKEN=" + fileToken, "BERTH_SERVER_PROT=1", "BERTH_URL=http://x",
		"BERTH_METRICS_PUBLIC=", "BERTH_SERVER_PORT=tcp://1.2.3.4:8070"}
	l := newTestLoader(t, env, "--config", writeFile(t, ""))
	_, err := l.load()
	require.ErrorContains(t, err, "BERTH_SERVER_PROT in the environment is not a key")
	require.Equal(t, []string{"", "server.port", "metrics.public"}, faultKeys(t, l))
}

func TestSecretsAreNotFlagsAndNotInFaults(t *testing.T) {
	cmd := &cobra.Command{}
	newLoader(cmd, nil).keyFlags(cmd)
	require.NotNil(t, cmd.Flags().Lookup("server.port"))
	for _, key := range []string{"authorization.token", "remote.token", "docker.registries"} {
		require.Nil(t, cmd.Flags().Lookup(key), key)
	}
	const secret = "top-secret-value"
	for key := range leaves(new(v1.Config)) {
		section, name, _ := strings.Cut(key.key, ".")
		text := section + ":\n  " + strings.ReplaceAll(name, ".", ":\n    ") + ": " + secret + "\n"
		_, err := newTestLoader(t, []string{envName(key.key) + "=" + secret}, "--config", writeFile(t, text)).load()
		require.NotContains(t, errText(err), secret, key.key)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLooseModesAreWarnedOf(t *testing.T) {
	path := writeFile(t, "authorization: {token: "+fileToken+"}")
	require.NoError(t, os.Chmod(path, 0o644))
	got, err := newTestLoader(t, nil, "--config", path).load()
	require.NoError(t, err)
	require.Len(t, got.warnings, 1)
	require.Contains(t, got.warnings[0], "0644")
}

func TestAMissingFileIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.yaml")
	l := newTestLoader(t, nil, "--config", path)
	first, made, err := l.loadOrInit()
	require.NoError(t, err)
	require.True(t, made)
	again, made, err := l.loadOrInit()
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, first.config.Authorization.Token, again.config.Authorization.Token)
}

func TestWhereNoFileCanBeWrittenTheEnvironmentIsNamed(t *testing.T) {
	path := "/proc/none/berth.yaml"
	_, _, err := newTestLoader(t, nil, "--config", path).loadOrInit()
	require.ErrorContains(t, err, "authorization.token")
	require.ErrorContains(t, err, "name a place for it with --config or BERTH_CONFIG")
	env := []string{"BERTH_AUTHORIZATION_TOKEN=" + fileToken}
	got, made, err := newTestLoader(t, env, "--config", path).loadOrInit()
	require.NoError(t, err)
	require.False(t, made)
	require.Len(t, got.warnings, 1)
}

// runConfig runs `berth config ...`, and returns what it printed.
func runConfig(args ...string) (string, error) {
	root := &cobra.Command{Use: "berth"}
	root.PersistentFlags().StringP("output", "o", "text", "")
	root.AddCommand(newConfigCommand(newLoader(root, []string{"HOME=/home/me"})))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"config"}, args...))
	err := root.Execute()
	return out.String(), err
}

func TestInitNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "berth.yaml")
	out, err := runConfig("init", path)
	require.NoError(t, err)
	require.Equal(t, "wrote "+path+"\n", out)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	first, err := os.ReadFile(path)
	require.NoError(t, err)

	_, err = runConfig("init", path)
	require.ErrorContains(t, err, "not overwritten")
	still, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, first, still)

	out, err = runConfig("init", "--force", path, "-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"`+path+`"}`, out)
	kept, err := os.ReadFile(path + ".bak")
	require.NoError(t, err)
	require.Equal(t, first, kept)
	fresh, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, first, fresh, "a fresh token")
	names, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, names, 2, "no temporary file is left")
}

func TestCheckPrintsEveryFault(t *testing.T) {
	path := writeFile(t, "server: {port: x}\nlog: {level: loud}\n")
	out, err := runConfig("check", path)
	require.Error(t, err)
	require.Equal(t, "fault: server.port: must be a whole number (line 1)\n"+
		"fault: authorization.token: is required: `berth config init` writes a file with a fresh one\n"+
		"fault: log.level: must be one of debug, info, warn, error\n"+path+" has 3 faults\n", out)

	broken := writeFile(t, "server: {port: 1")
	out, err = runConfig("check", broken)
	require.Error(t, err)
	require.Contains(t, out, "fault: line 1: ")
	require.Contains(t, out, broken+" has 1 fault\n")

	out, err = runConfig("check", "-o", "json", path)
	require.Error(t, err)
	var got report
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.False(t, got.Valid)
	require.Len(t, got.Faults, 3)

	_, err = runConfig("check", "--config", path+".none")
	require.Error(t, err)

	out, err = runConfig("check", writeFile(t, "authorization: {token: "+fileToken+"}"))
	require.NoError(t, err)
	require.Contains(t, out, "is valid")
	require.NotContains(t, out, fileToken)
}
