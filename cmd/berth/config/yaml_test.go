package config

import (
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
		{"server: {port: 1, port: 2}", []string{""}},
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
		{"log: &l {level: info}\nmetrics: *l", []string{"metrics.level"}},
		{"a: &a [*a]", []string{""}},
		{"? {a: b}\n: c", []string{""}},
		{"remote: {token: 0123}", []string{"remote.token"}},
		{"docker: {allowed_mounts: [1]}", []string{"docker.allowed_mounts[0]"}},
	}
}

func TestLoadNamesEveryError(t *testing.T) {
	for _, row := range badFiles() {
		l := newTestLoader(t, writeFile(t, row.text), "BERTH_AUTHORIZATION_TOKEN="+fileToken)
		require.Equal(t, row.keys, faultKeys(t, l), row.text)
	}
}

func TestDecodeErrorsSayWhat(t *testing.T) {
	for text, want := range map[string]string{
		"server: {port: 1, port: 2}":           `line 1: key "port" already set in map`,
		"server: {port: 1}\nserver: {port: 2}": `line 2: key "server" already set in map`,
		"remote: {token: 0123}":                "remote.token: must be a text: put it in quotes",
		"? {a: secret}\n: c":                   "has a key that is not a text",
		"a: !!int secret":                      "has a value that is not of the type of its tag",
		"a: b: c":                              "mapping values are not allowed in this context",
	} {
		c := v1.Defaults()
		require.EqualError(t, decode(strings.NewReader(text), &c), want)
	}
}

func TestDocuments(t *testing.T) {
	for text, want := range map[string][]Document{
		"":                                    nil,
		"# a\n---\n# b\n":                     nil,
		"a: 1":                                {{1, []byte("a: 1")}},
		"# a\n---\na: 1\n---\n# b\n---\nc: 1": {{1, []byte("\na: 1\n")}, {3, []byte("\nc: 1")}},
		"a: |\n  ---\n----: b\n--- {c: 1}":    {{1, []byte("a: |\n  ---\n----: b\n")}, {2, []byte("{c: 1}")}},
	} {
		require.Equal(t, want, Documents([]byte(text)), text)
	}
}

func TestDecodeEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "---\n...\n", "~", "null"} {
		c := v1.Defaults()
		require.Empty(t, decode(strings.NewReader(text), &c), "%q", text)
		require.Equal(t, v1.Defaults(), c)
	}
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
