package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// smallDisk mounts a tmpfs with these options and returns its directory.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, unix.Mount("berth-e2e", dir, "tmpfs", 0, options), "mounting needs root")
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestFullDisk fills the disk of the store: kills and reads succeed, other
// changes are refused, and they succeed again when there is free space.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "size=192m")
	b := berthtest.Start(t, berthtest.Options{Data: filepath.Join(dir, "data")})
	c := b.Started(t, "mc", nil)
	b.Started(t, "other", nil)
	before, _ := b.Engine.Inspect(t, c.ContainerID)
	pid := b.Pid()

	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	for _, request := range []string{"POST /volumes", "POST /containers/mc/restart", "DELETE /containers/mc"} {
		walk(t, b, nil, []row{{request, "", 500, wrong("Database operation failed")}})
	}
	require.Equal(t, v1.Running, b.Container(t, "mc").State)
	b.Verb(t, "other", "kill")
	b.State(t, "other", "exit")
	walk(t, b, nil, []row{{"POST /containers/other/start", "", 500, wrong("Database operation failed")}})
	refused := b.Do(t, "POST", "/volumes", nil)
	require.Equal(t, "store_disk_full", refused.Header.Get("X-Error-Code"))
	failure := `"request failed","request":"` + refused.Header.Get("X-Request-Id")
	require.Equal(t, 1, strings.Count(b.Log(), failure), "the log has the cause once, although the audit log is full too")
	unready := b.Do(t, "GET", "/readyz", nil)
	require.Equal(t, 503, unready.Status)
	require.Contains(t, string(unready.Body), "store: the disk is full")
	require.Equal(t, 200, b.Do(t, "GET", "/healthz", nil).Status)
	out, _, code := runCommand(t, b, "ps")
	require.Equal(t, 7, code)
	require.Contains(t, out, " is not ready: store: the disk is full; berth doctor names what to do\n")
	full := "store: the disk is full: requests are refused, except stop and kill NotWritable\n"
	berthtest.Until(t, wait, "the event of the full disk", func() bool { return eventsOfNode(t, b) == full })
	_, errOut, _ := runCommand(t, b, "volumes", "create")
	require.Contains(t, errOut, "Database operation failed: the disk of the daemon's storage.data_path is full; free space on it")
	begins := regexp.MustCompile(`"the store cannot be written: .*bytes are free in ` + filepath.Join(dir, "data"))
	berthtest.Until(t, wait, "the log names the disk", func() bool { return begins.MatchString(b.Log()) })

	require.NoError(t, os.Remove(filler))
	b.Ready(t)
	berthtest.Until(t, wait, "the log ends the failure", func() bool { return strings.Contains(b.Log(), "the store can be written again") })
	berthtest.Until(t, wait, "the events end it", func() bool { return strings.Contains(eventsOfNode(t, b), "the store can be written again, after ") })
	require.Equal(t, pid, b.Pid(), "the daemon did not exit")
	after, _ := b.Engine.Inspect(t, c.ContainerID)
	require.Equal(t, before.State.Pid, after.State.Pid, "nor did the container")
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	b.Volume(t)
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	piece := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(piece)
	}
	require.ErrorIs(t, err, unix.ENOSPC)
}
