package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestFailedCommit: berth ends when its store cannot be written any more, for another reason than
// a full disk. Containers run on, and the next start has what was acknowledged.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Data: filepath.Join(t.TempDir(), "data")})
	c := b.Started(t, "mc", nil)
	before := b.Processes(t)
	require.NotEmpty(t, before["mc"])
	next := filepath.Join(b.Data, "store", "00002.mem")
	require.NoError(t, os.WriteFile(next, make([]byte, 100), 0o600), "Badger cannot begin its next log")

	body := b.Body(t, "mc", berthtest.Spec{"volume_id": c.VolumeID})
	acknowledged, refused, last, began := 0, 0, "", time.Now()
	for i := 0; refused == 0; i++ {
		require.Less(t, i, 200, "a log has 8 MiB")
		body["install_script"] = fmt.Sprintln("#", i) + strings.Repeat("# nothing happens\n", 7000)
		answer, err := b.Try(t.Context(), "PUT", "/containers/mc", body)
		switch {
		case err == nil && answer.Status == 200:
			acknowledged++
		case err == nil:
			refused, last = answer.Status, string(answer.Body)
		default:
			refused = -1 // it has ended already
		}
	}
	require.Contains(t, []int{500, -1}, refused, "%s", last)
	_, code := b.Exit(t, began)
	require.Equal(t, 1, code)
	require.Contains(t, b.Log(), "store failed: commit: cannot create new mem table")
	require.Contains(t, b.Log(), "nothing can be stored any more, so berth ends, and its service manager starts it again; containers run on")

	b.Run(t) // as the service manager does
	b.Ready(t)
	var log struct{ Entries []v1.AuditEntry }
	b.Get(t, "/audit?container=mc", &log)
	applied := 0
	for _, e := range log.Entries {
		if e.Action == "container.apply" && e.Status == 200 {
			applied++
		}
	}
	require.Equal(t, acknowledged, applied)
	require.Equal(t, before, b.Processes(t), "the container runs on")
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
}
