package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestLostVolumeIsVisible removes the directory of a volume while its container runs, and
// moves it back: the table of berth ps, the condition, the list of volumes, the log and
// the events name it, each by itself, and the log again after a kill of berth.
func TestLostVolumeIsVisible(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Config: "reconcile: {resync: 1s}\n", Env: []string{"BERTH_LOG_FORMAT=json"}})
	b.Made(t, "mc", nil)
	b.Verb(t, "mc", "start")
	b.State(t, "mc", "running")
	dir := b.Container(t, "mc").Mount.Source
	require.NoError(t, os.Rename(dir, dir+"-away"))
	row := regexp.MustCompile(`(?m)^mc +running .* the directory of the volume is missing`)
	berthtest.Until(t, wait, "the row of mc", func() bool { return row.MatchString(psOnTerminal(t, b)) })
	ready := func() bool {
		volumes, err := b.API.Volumes().List(t.Context())
		require.NoError(t, err)
		require.Len(t, volumes, 1)
		return volumes[0].Ready
	}
	require.False(t, ready())
	c, err := b.API.Containers().Get(t.Context(), "mc")
	require.NoError(t, err)
	condition := v1.FindCondition(c.Conditions, v1.VolumeReady)
	require.Equal(t, "False VolumeMissing", condition.Status+" "+condition.Reason)
	require.Regexp(t, `(?m)^the directory of the volume is missing .* restore a backup VolumeMissing$`, eventsOf(t, b, "mc"))
	line := regexp.MustCompile(`"WARN","msg":"the directory of the volume is missing: .*"reason":"DirectoryMissing","container":"mc"`)
	lines := func() int { return len(line.FindAllString(b.Log(), -1)) }
	require.Equal(t, 1, lines(), "the log has it once")

	b.Kill9(t)
	b.Run(t)
	b.Ready(t)
	berthtest.Until(t, wait, "the line of the next start", func() bool { return lines() == 2 })
	require.NoError(t, os.Rename(dir+"-away", dir))
	berthtest.Until(t, wait, "the event of its return", func() bool {
		return strings.Contains(eventsOf(t, b, "mc"), "the directory of the volume is there again")
	})
	require.True(t, ready())
	require.Equal(t, 1, strings.Count(eventsOf(t, b, "mc"), "VolumeMissing"), "one event")
}
