package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// settings holds the keys of the configuration, each with invalid values in YAML,
// separated by spaces.
var settings = map[string]string{
	"server.host": `"" "a_b" [] {}`, "server.port": `-1 65536 1.5 x [] {}`, "server.body_limit": `0 1 2GiB x -1 []`,
	"server.tls.cert": `/no/such/file []`, "server.tls.key": `/no/such/file []`,
	"server.allowed_origins": `x {}`, "server.allowed_origins[0]": `panel.example "" 5`,
	"server.trusted_proxies": `x {}`, "server.trusted_proxies[0]": `10.0.0.1 x`,
	"authorization.enabled": `x 5 [] {}`, "authorization.allow_insecure": `x 5`, "authorization.token": `"" x berth_1 BERTH_00000000000000000000000000000000 []`,
	"authorization.max_ttl": `0s x -1h []`,
	"remote.enabled":        `x 5`, "remote.url": `x ftp://panel http:// http://u:p@panel []`, "remote.token": `"a\u0020b" []`, "remote.node": `"` + strings.Repeat("x", 254) + `" []`,
	"storage.data_path": `x / []`, "storage.volumes_path": `x /`, "storage.max_file_size": `0 x`, "storage.max_extract_size": `0 x`,
	"storage.hard_limit": `x`, "storage.uid": `-2 4294967295 x`, "storage.gid": `-2 4294967295 x`,
	"docker.host": `x`, "docker.allowed_mounts[0]": `x /`, "docker.registries": `x`, "docker.registries.r": `{} {username:u} x`,
	"docker.network": `"a/b"`, "docker.mtu": `-1 575 65536 x`, "docker.pids_limit": `0 -1 x`, "docker.nofile_limit": `-1 10 2000000 x`, "docker.root_limit": `1 x`, "docker.log_max_size": `1 x`, "docker.log_max_files": `0 1001 x`,
	"firewall.backend": `x "" []`, "firewall.egress_filter": `x 5`, "reconcile.workers": `0 257 x`, "reconcile.resync": `0s x`, "reconcile.create_wait": `-1s 2m x`,
	"reconcile.backoff.initial": `0s x`, "reconcile.backoff.max": `1ms x`, "reconcile.backoff.reset_after": `0s x`,
	"events.retention": `1s x`, "events.max": `0 -1 x`, "audit.retention": `1s x`, "audit.max": `0 -1 x`, "files.pull": `x 5`, "files.pull_private": `x 5`, "metrics.public": `x 5`, "ui.enabled": `x 5`, "log.level": `loud`, "log.format": `xml`,
	"server.zzz": `1`, "zzz": `1 {}`,
}

// TestInvalidSettings: a reload with an invalid value answers 400 and names the
// key, and the complete old configuration stays in effect.
func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	port := strings.TrimPrefix(b.Addr, "127.0.0.1:")
	before, tried := string(b.Must(t, "GET", "/remote/config", nil).Body), 0
	for key, values := range settings {
		for _, value := range strings.Fields(values) {
			config := map[string]any{
				"server":        map[string]any{"host": "127.0.0.1", "port": json.RawMessage(port)},
				"authorization": map[string]any{"token": b.Token}, "storage": map[string]any{"data_path": b.Data},
				"firewall": map[string]any{"backend": "none"}, "metrics": map[string]any{"public": true},
			}
			text := inYAML(config, strings.Split(key, "."), value)
			require.NoError(t, os.WriteFile(b.Config, []byte(text), 0o600)) // its bad tokens are no secrets
			got := b.Do(t, "POST", "/remote/config/reload", nil)
			line := fmt.Sprintf("%s: %s: %d %s", key, value, got.Status, got.Body)
			require.Equal(t, 400, got.Status, line)
			require.Contains(t, string(got.Body), key, line)
			require.Equal(t, "invalid_request", got.Header.Get("X-Error-Code"), line)
			require.Equal(t, before, string(b.Must(t, "GET", "/remote/config", nil).Body), line)
			require.Equal(t, 401, b.Do(t, "GET", "/metrics", nil, "Authorization", "").Status, "nothing of it is in force: %s", line)
			tried++
		}
	}
	t.Logf("%d bad values of %d settings", tried, len(settings))
}

// inYAML returns a configuration with one more setting.
func inYAML(config map[string]any, path []string, value string) string {
	var lines strings.Builder
	section := path[0]
	for name, fields := range config {
		if name != section {
			fmt.Fprintf(&lines, "%s: %s\n", name, inJSON(fields))
		}
	}
	known, _ := config[section].(map[string]any)
	if len(path) == 1 {
		fmt.Fprintf(&lines, "%s: %s\n", section, value)
		return lines.String()
	}
	inner := value
	for i := len(path) - 1; i > 0; i-- {
		name, list := strings.CutSuffix(path[i], "[0]")
		if list {
			inner = "[" + inner + "]"
		}
		if i == 1 {
			delete(known, name)
		}
		inner = fmt.Sprintf("%s: %s", name, strings.ReplaceAll(inner, ":u", ": u"))
		if i > 1 {
			inner = "{" + inner + "}"
		}
	}
	fmt.Fprintf(&lines, "%s: {%s", section, inner)
	for name, field := range known {
		fmt.Fprintf(&lines, ", %s: %s", name, inJSON(field))
	}
	lines.WriteString("}\n")
	return lines.String()
}

func inJSON(v any) string {
	text, _ := json.Marshal(v) // plain data
	return string(text)
}
