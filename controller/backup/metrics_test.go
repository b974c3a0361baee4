package backup

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

func TestMetrics(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		w.volume("w", "w")
		w.backup("of w", func(s *v1.BackupSpec) { s.VolumeID = "w" })
		w.policy(v1.PolicySpec{Every: v1.Duration(6 * time.Hour), Keep: 1, Target: v1.TargetLocal})
		w.update(func(tx *store.Tx) error { return store.Volumes.Delete(tx, "w") })
		reg := prometheus.NewRegistry()
		limits := v1.Defaults().Backups
		limits.MaxSize = 100
		m := Register(reg, w.store, func() v1.BackupsConfig { return limits })
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP berth_backup_last_completed_timestamp_seconds When the newest completed backup of a volume had completed, Unix time; absent without one.
# TYPE berth_backup_last_completed_timestamp_seconds gauge
berth_backup_last_completed_timestamp_seconds{volume="v"} 9.466848e+08
# HELP berth_backup_policy_period_seconds The time between two backups of the policy of a volume, with cron the longer one of the last and the present one; absent without one.
# TYPE berth_backup_policy_period_seconds gauge
berth_backup_policy_period_seconds{volume="v"} 21600
# HELP berth_backup_limit_bytes The configured limit of berth_backup_usage_bytes; absent without one.
# TYPE berth_backup_limit_bytes gauge
berth_backup_limit_bytes{target="local"} 100
# HELP berth_backup_usage_bytes Bytes of the archives of a target.
# TYPE berth_backup_usage_bytes gauge
berth_backup_usage_bytes{target="local"} 10
berth_backup_usage_bytes{target="s3"} 0
`), "berth_backup_last_completed_timestamp_seconds", "berth_backup_policy_period_seconds", "berth_backup_limit_bytes", "berth_backup_usage_bytes"))
		m.observe(v1.TargetLocal, v1.BackupStatus{State: v1.JobCompleted, Size: 9})
		m.observe(v1.TargetLocal, v1.BackupStatus{State: v1.JobFailed})
		m.observe(v1.TargetLocal, v1.BackupStatus{State: v1.JobFailed})
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP berth_backup_bytes_total Bytes of the archives of completed backups.
# TYPE berth_backup_bytes_total counter
berth_backup_bytes_total{target="local"} 9
berth_backup_bytes_total{target="s3"} 0
# HELP berth_backups_total Backups that have ended.
# TYPE berth_backups_total counter
berth_backups_total{result="completed",target="local"} 1
berth_backups_total{result="completed",target="s3"} 0
berth_backups_total{result="failed",target="local"} 2
berth_backups_total{result="failed",target="s3"} 0
`), "berth_backup_bytes_total", "berth_backups_total"))
	})
}
