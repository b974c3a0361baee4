package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

const wait = 3 * time.Minute

// dashboardQueries returns the queries of dashboard.json for all instances and
// containers, by the title of their panel.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	queries := map[string]string{}
	for _, p := range d.Panels {
		for i, target := range p.Targets {
			expr := strings.NewReplacer("$instance", ".*", "$container", ".*").Replace(target.Expr)
			queries[fmt.Sprintf("%s %d", p.Title, i+1)] = expr
		}
	}
	require.NotEmpty(t, queries)
	return queries
}

// startPrometheus runs a Prometheus with alerts.yaml that scrapes b every second,
// and returns its URL.
func startPrometheus(t *testing.T, b *berthtest.Berth) string {
	t.Helper()
	rules, err := filepath.Abs("alerts.yaml")
	require.NoError(t, err)
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: berth, authorization: {credentials: %q}, static_configs: [{targets: [%q]}]}
`, rules, b.Token, b.Addr)
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	addr := fmt.Sprintf("127.0.0.1:%d", berthtest.FreePort(t))
	cmd := exec.Command(tool(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	cmd.Stderr = t.Output()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "http://" + addr
}

// get decodes the data of an answer of Prometheus into data, and reports whether
// there was one.
func get(address string, data any) bool {
	resp, err := http.Get(address)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && json.Unmarshal(text, &struct{ Data any }{data}) == nil
}

// TestDashboardAndAlertsOnPrometheus scrapes a berth with a container in each state
// that the dashboard shows: every query of it gives a series, and every alert rule
// is evaluated without an error.
func TestDashboardAndAlertsOnPrometheus(t *testing.T) {
	b := berthtest.Start(t, berthtest.Options{})
	prometheus := startPrometheus(t, b)
	b.Started(t, "busy", nil)
	b.Made(t, "crashes", berthtest.Spec{"startup_command": "sh -c 'exit 3'"})
	b.Made(t, "eats", berthtest.Spec{"startup_command": "sh -c 'tail /dev/zero'", "limits": map[string]any{"memory": 16 << 20}})
	series := func(query string) (n int) {
		var data struct{ Result []any }
		get(prometheus+"/api/v1/query?query="+url.QueryEscape(query), &data)
		return len(data.Result)
	}
	// A rise is seen only from a first value on.
	berthtest.Until(t, wait, "the first scrape", func() bool { return series(`berth_container_crashes_total`) == 3 })
	b.Verb(t, "crashes", "start")
	b.Verb(t, "eats", "start")
	for title, query := range dashboardQueries(t) {
		berthtest.Until(t, wait, "a series for "+title+": "+query, func() bool { return series(query) > 0 })
	}
	berthtest.Until(t, wait, "every rule is evaluated", func() bool {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if !get(prometheus+"/api/v1/rules", &data) || len(data.Groups) == 0 {
			return false
		}
		for _, r := range data.Groups[0].Rules {
			require.Empty(t, r.LastError, r.Name)
			if r.Health != "ok" {
				return false
			}
		}
		return true
	})
}
