package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// archivers returns the processes of a daemon that write archives.
func archivers(t *testing.T, b *berthtest.Berth) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", b.Pid()))
	require.NoError(t, err)
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			name, _ := os.ReadFile("/proc/" + field + "/cmdline")
			pid, err := strconv.Atoi(field)
			require.NoError(t, err)
			if strings.HasPrefix(string(name), "berth\x00archive-volume\x00") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// archiving starts a backup that takes minutes, and returns its id and its process.
func archiving(t *testing.T, b *berthtest.Berth, volume string) (id string, pid int) {
	t.Helper()
	id = startBackup(t, b, volume, nil)
	berthtest.Until(t, time.Minute, "the process starts", func() bool {
		pids := archivers(t, b)
		if len(pids) == 1 {
			pid = pids[0]
		}
		return len(pids) > 0
	})
	return id, pid
}

// TestBackupProcess: the process that writes an archive knows no secret, a killed one is a
// failed backup, and none outlives its backup or its daemon.
func TestBackupProcess(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Config: "backups: {bandwidth: 100000}"})
	volume := b.Volume(t)
	fillVolume(t, filepath.Join(b.Data, "volumes", volume), 128<<20)
	ended := func(pid int) {
		t.Helper()
		berthtest.Until(t, 10*time.Second, "the process ends", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
			return err != nil
		})
	}

	id, pid := archiving(t, b, volume)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	require.Empty(t, environ)
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	require.NoError(t, err)
	require.Equal(t, "berth\x00archive-volume\x00"+volume+"\x00", string(cmdline))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	s := backedUp(t, b, id)
	require.Equal(t, "failed", s.State)
	require.Equal(t, "the process that writes the archive has failed: signal: killed; the host may be out of memory", s.Message)
	require.Empty(t, filesOf(t, filepath.Join(b.Data, "backups")))

	id, pid = archiving(t, b, volume)
	b.Must(t, "DELETE", "/backups/"+id, nil)
	ended(pid)

	_, pid = archiving(t, b, volume)
	b.Kill9(t)
	ended(pid)
	b.Run(t)
	b.Ready(t)
	berthtest.Until(t, time.Minute, "the backup begins again", func() bool { return len(archivers(t, b)) == 1 })
	pid = archivers(t, b)[0]
	took, code := b.Term(t)
	require.Zero(t, code)
	require.Less(t, took, 10*time.Second)
	ended(pid)
}
