package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestSecretsAreNeitherFlagsNorInErrors(t *testing.T) {
	flags := map[string]bool{}
	for _, o := range NewLoader(nil).Overrides() {
		flags[o.Name] = true
	}
	require.True(t, flags["server.port"])
	for _, key := range []string{"authorization.token", "remote.token", "docker.registries", "backups.s3.secret_key"} {
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

// TestKeyTextOfLists: the elements are shown as they are.
func TestKeyTextOfLists(t *testing.T) {
	var c v1.Config
	c.Server.AllowedOrigins = []string{"https://panel.example", "http://[::1]"}
	c.Docker.AllowedMounts = []string{"/srv/my data"}
	texts := map[string]string{}
	for key := range Keys(&c) {
		texts[key.Name] = key.Text()
	}
	require.Equal(t, "https://panel.example,http://[::1]", texts["server.allowed_origins"])
	require.Equal(t, "/srv/my data", texts["docker.allowed_mounts"])
	require.Empty(t, texts["server.trusted_proxies"])
	require.Empty(t, texts["docker.registries"])

	// What a claim is shown as, the environment sets.
	want := map[string]v1.VolumeClaim{"fast": {Claim: "nvme", SizeLimit: 7 << 20}, "slow": {Claim: "disks"}}
	c.Kubernetes.Claims = want
	for key := range Keys(&c) {
		if key.Name == "kubernetes.claims" {
			require.Equal(t, "fast=nvme:7MiB,slow=disks", key.Text())
			c.Kubernetes.Claims = nil
			require.NoError(t, key.Set("fast=nvme:7MiB,slow=disks"))
			require.Error(t, key.Set("fast"))
			require.Error(t, key.Set("fast=nvme:lots"))
		}
	}
	require.Equal(t, want, c.Kubernetes.Claims)
}

var quoted = regexp.MustCompile("`([^`]*)`")

// TestDocumentedKeys compares the table of hack/docs/operator.md with the code:
// every key, its default, and whether a reload changes it.
func TestDocumentedKeys(t *testing.T) {
	text, err := os.ReadFile("../../../hack/docs/operator.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Configuration\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	type row struct{ value, changes string }
	rows := map[string]row{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		keys, values := quoted.FindAllStringSubmatch(cells[1], -1), quoted.FindAllStringSubmatch(cells[2], -1)
		for i, key := range keys {
			r := row{changes: strings.TrimSpace(cells[4])}
			if len(values) > 0 {
				r.value = values[min(i, len(values)-1)][1]
			}
			rows[key[1]] = r
		}
	}
	c := v1.Defaults()
	for key := range Keys(&c) {
		r, there := rows[key.Name]
		require.True(t, there, "%s is missing", key.Name)
		delete(rows, key.Name)
		documented := v1.Defaults()
		for other := range Keys(&documented) {
			if other.Name == key.Name && !other.Secret() {
				require.NoError(t, other.Set(r.value), "%s: %q", key.Name, r.value)
				require.True(t, equal(other.value, key.value), "%s: the default is %v, not %s", key.Name, key.value, r.value)
			}
		}
		live := map[bool]string{true: "live", false: "restart"}[isLive(key.Name, c, c)]
		require.Equal(t, live, r.changes, key.Name)
	}
	require.Empty(t, rows, "the table has rows that are not keys")
}
