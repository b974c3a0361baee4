package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

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

func TestDecodeEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "---\n...\n", "~", "null"} {
		c := v1.Defaults()
		require.Empty(t, decode(strings.NewReader(text), &c), "%q", text)
		require.Equal(t, v1.Defaults(), c)
	}
}

func TestLargeFileIsRefused(t *testing.T) {
	text := "# " + strings.Repeat("x", maxFile) + "\nserver: {port: 1}\n"
	path := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := (&Loader{File: path, env: map[string]string{"BERTH_AUTHORIZATION_TOKEN": fileToken}}).Load()
	require.ErrorContains(t, err, "larger than")
}

func FuzzDecode(f *testing.F) {
	f.Add(template)
	for _, row := range badFiles() {
		f.Add(row.text)
	}
	f.Add("<<: *a")
	f.Add("? {a: b}\n: c")
	f.Add("&a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		c := v1.Defaults()
		c.Authorization.Token = fileToken
		if len(decode(strings.NewReader(text), &c)) == 0 {
			c.Complete()
			_ = c.Validate().Error()
		}
	})
}
