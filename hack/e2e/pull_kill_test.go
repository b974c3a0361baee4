package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestPullsSurviveKills kills the daemon at random moments while it downloads: each
// download ends with all bytes, or failed, and has exactly one entry in the audit log. One whose
// last attempt was killed between its file and its record has failed, and the file is whole.
func TestPullsSurviveKills(t *testing.T) {
	t.Parallel()
	mirror, random := newMirror(t), dice(t)
	b := berthtest.Start(t, berthtest.Options{Config: "files: {pull: true, pull_private: true}"})
	volume := b.Volume(t)
	size := map[string]int{} // in MiB, by the path of a download that was answered
	for round := range rounds(3, 20) {
		for i := range 3 {
			name := fmt.Sprintf("pull-%d-%d", round, i)
			n := 1 + random.IntN(24)
			b.Must(t, "POST", "/volumes/"+volume+"/pull", map[string]any{"url": fmt.Sprintf("%s/%d", mirror.URL, n), "path": name}, "X-Request-Id", name)
			size[name] = n
		}
		pause(moment(random) / 4)
		b.Kill9(t)
		b.Run(t)
		b.Answers(t, "/healthz")
	}
	var list []v1.PullView
	berthtest.Until(t, wait, "all downloads end", func() (ended bool) {
		var err error
		list, err = b.API.Files().Pulls(t.Context(), volume)
		require.NoError(t, err)
		return !slices.ContainsFunc(list, func(p v1.PullView) bool { return !p.State.Final() })
	})
	require.Len(t, list, len(size))
	var there []string
	for _, p := range list {
		text, err := os.ReadFile(filepath.Join(b.Data, "volumes", volume, p.Path))
		if p.State == v1.PullFailed && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		require.Contains(t, []v1.PullState{v1.PullCompleted, v1.PullFailed}, p.State, p.Message)
		there = append(there, p.Path)
		require.NoError(t, err)
		require.Len(t, text, size[p.Path]<<20)
		require.False(t, slices.ContainsFunc(text, func(c byte) bool { return c != 0 }))
	}
	t.Logf("the files of %d of %d downloads are there", len(there), len(size))
	slices.Sort(there)
	berthtest.Until(t, wait, "nothing else is left", func() bool { return slices.Equal(there, parts(t, b, volume)) })
	requirePullEntries(t, b, volume, size)
}

// requirePullEntries requires one entry for each download.
func requirePullEntries(t *testing.T, b *berthtest.Berth, volume string, size map[string]int) {
	t.Helper()
	var body struct{ Entries []v1.AuditEntry }
	b.Get(t, "/audit?limit=1000&volume="+volume, &body)
	entries := map[string]int{}
	for _, e := range body.Entries {
		if e.Action == "pull.create" {
			require.Equal(t, []any{volume + "/" + e.RequestID, "administrator", 200}, []any{e.Object, e.Actor.Name, e.Status})
			entries[e.RequestID]++
		}
	}
	require.Len(t, entries, len(size))
	for name := range size {
		require.Equal(t, 1, entries[name], name)
	}
}
