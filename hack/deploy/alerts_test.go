package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// series maps a series to its values in promtool's notation, one per 30 s.
type series map[string]string

// evaluatedAt is when the alerts of a failure are compared, in a test of an hour.
const evaluatedAt = "40m"

// healthy returns the series of a busy host without a failure: containers run, one
// installs, one starts, one was stopped by request, and one restarted once.
func healthy() series {
	return series{
		`up{job="berth"}`:                                                                   "1x120",
		`berth_engine_up`:                                                                   "1x120",
		`berth_store_writable`:                                                              "1x120",
		`berth_disk_free_bytes{disk="data"}`:                                                "50e9x120",
		`berth_disk_size_bytes{disk="data"}`:                                                "100e9x120",
		`berth_disk_free_bytes{disk="volumes"}`:                                             "50e9x120",
		`berth_disk_size_bytes{disk="volumes"}`:                                             "100e9x120",
		`berth_container_state_seconds{container="busy",state="running"}`:                   "0+30x120",
		`berth_container_state_seconds{container="off",state="exit"}`:                       "0+30x120",
		`berth_container_state_seconds{container="new",state="installing"}`:                 "0+30x50 _x70",
		`berth_container_unready_seconds{container="new",reason="InstallSlow"}`:             "0+30x50 _x70",
		`berth_container_state_seconds{container="slow",state="starting"}`:                  "0+30x15 _x105",
		`berth_container_unready_seconds{container="slow",reason="StartPatternNotMatched"}`: "0+30x15 _x105",
		`berth_container_crashes_total{container="busy"}`:                                   "0x40 1x80",
		`berth_container_oom_kills_total{container="busy"}`:                                 "0x120",
		`berth_step_failures_total{step="start server"}`:                                    "0x40 1x80",
		`berth_volume_ready{volume="1"}`:                                                    "1x120",
		`berth_remote_lag_events`:                                                           "0 3 0 1 0x116",
		`berth_backup_last_completed_timestamp_seconds{volume="1"}`:                         "2000x120",
		`berth_backup_policy_since_timestamp_seconds{volume="1"}`:                           "-9000x120",
		`berth_backup_policy_period_seconds{volume="1"}`:                                    "600x120",
		`berth_backup_last_completed_timestamp_seconds{volume="manual"}`:                    "-900000x120",
		`berth_backup_usage_bytes{target="local"}`:                                          "50e9x120",
		`berth_backup_limit_bytes{target="local"}`:                                          "100e9x120",
		`berth_backup_usage_bytes{target="s3"}`:                                             "900e9x120",
		`berth_schedule_failures{container="busy",schedule="hourly"}`:                       "1x120",
		`berth_transfers_unanswered`:                                                        "0x120",
		`berth_auth_failures_total`:                                                         "0+1x120",
	}
}

// failures are what an operator has to learn about, with the series that differ
// from a healthy host's and the one alert that fires. The names and labels are
// those that berth shows: hack/e2e compares them on a real host.
var failures = map[string]struct {
	series series
	alert  string
}{
	"a healthy busy host": {},
	"berth is down":       {series{`up{job="berth"}`: "0x120"}, "BerthDown"},
	"the engine is away": {series{
		`berth_engine_up`: "0x120",
		`berth_step_failures_total{step="start server"}`:                             "0+5x120",
		`berth_container_unready_seconds{container="mc",reason="StartServerFailed"}`: "0+30x120",
	}, "BerthEngineDown"},
	"the store's disk is full": {series{
		`berth_store_writable`:                  "0x120",
		`berth_disk_free_bytes{disk="data"}`:    "1e9x120",
		`berth_disk_free_bytes{disk="volumes"}`: "1e9x120",
	}, "BerthStoreNotWritable"},
	"an image is missing": {series{
		`berth_container_state_seconds{container="mc",state="failed"}`:           "0+30x120",
		`berth_container_unready_seconds{container="mc",reason="ImageNotFound"}`: "0+30x120",
	}, "BerthImageMissing"},
	"the registry is away": {series{
		`berth_container_state_seconds{container="mc",state="installing"}`:    "0+30x120",
		`berth_container_unready_seconds{container="mc",reason="PullFailed"}`: "0+30x120",
		`berth_step_failures_total{step="pull image"}`:                        "0+1x120",
	}, "BerthRegistryUnreachable"},
	"a port is taken": {series{
		`berth_container_state_seconds{container="mc",state="exit"}`:         "0+30x120",
		`berth_container_unready_seconds{container="mc",reason="PortTaken"}`: "0+30x120",
		`berth_step_failures_total{step="start server"}`:                     "0+1x120",
	}, "BerthPortTaken"},
	"a volume's directory is gone": {series{
		`berth_container_state_seconds{container="mc",state="exit"}`:             "0+30x120",
		`berth_container_unready_seconds{container="mc",reason="VolumeMissing"}`: "0+30x120",
		`berth_volume_ready{volume="1"}`:                                         "0x120",
		`berth_step_failures_total{step="start server"}`:                         "0+1x120",
	}, "BerthVolumeMissing"},
	"the directory of a volume is removed while its container runs": {series{
		`berth_volume_ready{volume="1"}`: "0x120",
	}, "BerthVolumeMissing"},
	"an installation hangs": {series{
		`berth_container_state_seconds{container="mc",state="installing"}`:     "0+30x120",
		`berth_container_unready_seconds{container="mc",reason="Installing"}`:  "0+30x20 _x100",
		`berth_container_unready_seconds{container="mc",reason="InstallSlow"}`: "_x20 600+30x100",
	}, "BerthInstallStuck"},
	"an installation fails": {series{
		`berth_container_state_seconds{container="mc",state="failed"}`: "0+30x120",
	}, "BerthInstallFailed"},
	"a start pattern never matches": {series{
		`berth_container_state_seconds{container="mc",state="starting"}`:                  "0+30x120",
		`berth_container_unready_seconds{container="mc",reason="Starting"}`:               "0 30 _x118",
		`berth_container_unready_seconds{container="mc",reason="StartPatternNotMatched"}`: "_ _ 60+30x118",
	}, "BerthStartPatternNotMatched"},
	"starts time out again and again": {series{
		`berth_container_unready_seconds{container="mc",reason="StartPatternNotMatched"}`: "0+30x120",
		`berth_container_crashes_total{container="mc"}`:                                   "0+0.5x120",
	}, "BerthCrashLoop"},
	"starts time out now and then": {series{
		`berth_container_unready_seconds{container="mc",reason="StartPatternNotMatched"}`: "0+30x120",
		`berth_container_crashes_total{container="mc"}`:                                   "0x29 1x30 2x30 3x30",
	}, "BerthStartPatternNotMatched"},
	"memory runs out": {series{
		`berth_container_state_seconds{container="mc",state="running"}`: "0+30x5 0+30x5 0+30x108",
		`berth_container_oom_kills_total{container="mc"}`:               "0+1x120",
		`berth_container_crashes_total{container="mc"}`:                 "0+1x120",
	}, "BerthOutOfMemory"},
	"a crash loop at the longest backoff": {series{
		`berth_container_crashes_total{container="mc"}`:   "0x15 1x15 2x15 3x15 4x15 5x15",
		`berth_container_oom_kills_total{container="mc"}`: "0x95",
	}, "BerthCrashLoop"},
	"a crash loop": {series{
		`berth_container_state_seconds{container="mc",state="exit"}`:      "0+30x3 0+30x3 0+30x112",
		`berth_container_unready_seconds{container="mc",reason="Exited"}`: "0+30x120",
		`berth_container_crashes_total{container="mc"}`:                   "0+0.5x120",
		`berth_container_oom_kills_total{container="mc"}`:                 "0x120",
	}, "BerthCrashLoop"},
	"a container is over its disk limit": {series{
		`berth_container_state_seconds{container="mc",state="exit"}`:         "0+30x120",
		`berth_container_unready_seconds{container="mc",reason="OverLimit"}`: "0+30x120",
	}, "BerthDiskPressure"},
	"a disk fills": {series{
		`berth_disk_free_bytes{disk="volumes"}`: "8e9x120",
	}, "BerthDiskAlmostFull"},
	"the panel is away":             {series{`berth_remote_lag_events`: "0+1x120"}, "BerthPanelUnreachable"},
	"a schedule fails":              {series{`berth_schedule_failures{container="busy",schedule="nightly"}`: "2x120"}, "BerthScheduleFailing"},
	"a destination does not answer": {series{`berth_transfers_unanswered`: "1x120"}, "BerthTransferUnanswered"},
	"backups of a policy fail": {series{
		`berth_backup_last_completed_timestamp_seconds{volume="1"}`: "-3000x120",
	}, "BerthBackupOld"},
	"no backup of a policy has ever completed": {series{
		`berth_backup_policy_since_timestamp_seconds{volume="2"}`: "-3000x120",
		`berth_backup_policy_period_seconds{volume="2"}`:          "600x120",
	}, "BerthBackupOld"},
	"backups reach their limit": {series{
		`berth_backup_usage_bytes{target="local"}`: "95e9x120",
	}, "BerthBackupsFull"},
	"somebody guesses tokens": {series{`berth_auth_failures_total`: "0+90x120"}, "BerthTokensGuessed"},
}

// tool returns the path of prometheus or promtool, which ../prometheus.sh gets.
func tool(t *testing.T, name string) string {
	t.Helper()
	get := exec.Command("../prometheus.sh")
	get.Stderr = t.Output()
	dir, err := get.Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(dir)), name)
}

// TestEachFailureFiresOneAlert evaluates alerts.yaml with promtool over the series
// of each failure.
func TestEachFailureFiresOneAlert(t *testing.T) {
	rules, err := filepath.Abs("alerts.yaml")
	require.NoError(t, err)
	type object = map[string]any
	var tests []object
	for name, f := range failures {
		all := healthy()
		for k, v := range f.series {
			all[k] = v
		}
		var input []object
		for k, v := range all {
			input = append(input, object{"series": k, "values": v})
		}
		want := []object{}
		if f.alert != "" {
			want = append(want, object{"labels": fmt.Sprintf(`{alertname=%q}`, f.alert), "value": 1})
		}
		tests = append(tests, object{
			"name": name, "interval": "30s", "input_series": input,
			"promql_expr_test": []object{{
				"expr":        `count by (alertname) (ALERTS{alertstate="firing"})`,
				"eval_time":   evaluatedAt,
				"exp_samples": want,
			}},
		})
	}
	text, err := json.Marshal(object{"rule_files": []string{rules}, "evaluation_interval": "30s", "tests": tests})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "test.yaml") // YAML contains JSON
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, err := exec.Command(tool(t, "promtool"), "test", "rules", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
