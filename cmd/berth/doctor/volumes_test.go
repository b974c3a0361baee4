package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/client"
)

func TestVolumes(t *testing.T) {
	check := func(answers map[string]string) Result {
		return checkVolumes(t.Context(), newExamination(t.Context(), Options{Daemon: newFakeDaemon(t, answers)}))
	}
	list := func(second string) map[string]string {
		return map[string]string{"/readyz": "{}", "/volumes": `{"volumes":[{"path":"/v/1","ready":true},{"path":"/v/2","used_by":["mc","lobby"],"ready":` + second + `}]}`}
	}
	require.Equal(t, ok("the directories of all 2 volumes exist"), check(list("true")))
	r := check(list("false"))
	require.Equal(t, Fail, r.Status)
	require.Equal(t, "missing or unusable: /v/2 of mc, lobby", r.Message)
	require.Contains(t, r.Remedy, "restore a backup")
	require.Equal(t, Warn, check(map[string]string{"/readyz": "{}"}).Status, "the daemon does not list them")
	require.Equal(t, warning("unknown: no daemon answers", "see the check daemon"), checkVolumes(t.Context(), newExamination(t.Context(), Options{})))
	require.Contains(t, judgeVolumes(make([]client.Volume, maxNamed+2)).Message, " and 2 more")
}
