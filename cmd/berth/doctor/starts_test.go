package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/runtime/firewall"
	"berth/store"
)

// TestStartsAsObserved: what prevents every start is known to the daemon after the first one.
func TestStartsAsObserved(t *testing.T) {
	check := func(conditions string) Result {
		e := newExamination(t.Context(), Options{Daemon: newFakeDaemon(t, map[string]string{"/readyz": "{}", "/node": `{"conditions":[` + conditions + `]}`})})
		return e.reportedStarts(t.Context())
	}
	require.Equal(t, OK, check("").Status)
	require.Equal(t, OK, check(`{"type":"ContainersStart","status":"True"}`).Status)
	r := check(`{"type":"ContainersStart","status":"False","message":"no container starts: iptables failed","since":"2026-01-02T03:04:05Z"}`)
	require.Equal(t, Fail, r.Status)
	require.Contains(t, r.Message, "no container starts: iptables failed (at the last start, since 2026-01-02 03:04:05)")
}

func TestJudgeKeeper(t *testing.T) {
	require.NotEqual(t, Fail, judgeKeeper(berthtest.Keeper(t)).Status)
	own, err := os.Executable()
	require.NoError(t, err)
	require.Contains(t, judgeKeeper(own).Message, "is another program than berth-keeper")
	require.Equal(t, Fail, judgeKeeper(filepath.Join(t.TempDir(), "none")).Status)
	script := filepath.Join(t.TempDir(), "berth-keeper")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755))
	require.Equal(t, Fail, judgeKeeper(script).Status)
}

func TestVolumesWithoutExecution(t *testing.T) {
	dir := t.TempDir()
	require.Equal(t, OK, judgeExecution(dir).Status)
	require.NoError(t, unix.Mount("berth-test", dir, "tmpfs", unix.MS_NOEXEC, "size=1m"))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	require.Equal(t, Warn, judgeExecution(filepath.Join(dir, "volumes")).Status)
}

func TestChainsOfDocker(t *testing.T) {
	require.Equal(t, Fail, judgeChains(false, nil).Status)
	require.Equal(t, OK, judgeChains(true, nil).Status)
	require.Equal(t, OK, judgeChains(false, os.ErrPermission).Status, "the check firewall has it")
	for chain, want := range map[string]bool{"OUTPUT": true, "OUT": false, "BERTH-NONE": false} {
		has, err := firewall.HasChain(t.Context(), "nat", chain)
		require.NoError(t, err)
		require.Equal(t, want, has, chain)
	}
}

// TestAnotherProgramAnswers: nothing else on the port is a daemon that is not ready, or ready.
func TestAnotherProgramAnswers(t *testing.T) {
	for _, answer := range []http.HandlerFunc{http.NotFound, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }} {
		server := httptest.NewServer(answer)
		defer server.Close()
		c, err := client.New(client.Options{URL: server.URL})
		require.NoError(t, err)
		defer c.Close()
		r := judgeDaemon(askDaemon(t.Context(), c), "1.2.3")
		require.Equal(t, Fail, r.Status)
		require.Contains(t, r.Message, "another program than berth answers")
	}
}

// TestDaemonOfAnotherHost: a daemon that answers, and does not use the store of this host, is another's.
func TestDaemonOfAnotherHost(t *testing.T) {
	data := t.TempDir()
	examine := func() *examination {
		return newExamination(t.Context(), Options{Version: "1.2.3", Config: configured(func(c *v1.Config) { c.Storage.DataPath = data }),
			Daemon: newFakeDaemon(t, map[string]string{"/readyz": "{}", "/metrics": fmt.Sprintf(healthy, 1)})})
	}
	r := checkDaemon(t.Context(), examine())
	require.Equal(t, Warn, r.Status)
	require.Contains(t, r.Message, "is another than that of this configuration")
	require.Contains(t, checkStore(t.Context(), examine()).Message, "does not exist yet", "and its store is not that of this host")
	s, err := store.Open(filepath.Join(data, "store"), store.Options{})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, OK, checkDaemon(t.Context(), examine()).Status)
}

func TestReadOnlyDisk(t *testing.T) {
	e := hostWith(t, nil)
	dir := filepath.Join(e.Root, "data")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, unix.Mount("berth-test", dir, "tmpfs", unix.MS_RDONLY, "size=1m"))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	e.Config.Config.Storage = v1.StorageConfig{DataPath: "/data", VolumesPath: "/data"}
	r := checkDisk(t.Context(), e)
	require.Equal(t, Fail, r.Status)
	require.NotContains(t, r.Remedy, "remove files")
	require.Contains(t, r.Remedy, "mount it writable")
}
