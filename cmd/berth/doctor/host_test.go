package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime"
)

// hostWith returns an examination of a host with these files.
func hostWith(t *testing.T, files map[string]string) *examination {
	t.Helper()
	e := &examination{Options: Options{Root: t.TempDir(), Config: configured(func(*v1.Config) {})}}
	e.engine = func() (runtime.EngineInfo, error) { return runtime.EngineInfo{Containers: 10}, nil }
	e.daemon = func() daemonState { return daemonState{} }
	for name, text := range files {
		path := filepath.Join(e.Root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return e
}

func TestJudgeDisk(t *testing.T) {
	const gib = 1 << 30
	disk := func(size, free, files, freeFiles uint64) unix.Statfs_t {
		return unix.Statfs_t{Bsize: 4096, Blocks: size / 4096, Bavail: free / 4096, Files: files, Ffree: freeFiles}
	}
	for name, c := range map[string]struct {
		st   unix.Statfs_t
		want Status
	}{
		"much free":               {disk(100*gib, 50*gib, 1000, 900), OK},
		"less than a tenth":       {disk(100*gib, 9*gib, 1000, 900), Warn},
		"less than 1 GiB":         {disk(4*gib, gib-4096, 1000, 900), Warn},
		"the store refuses":       {disk(100*gib, 255<<20, 1000, 900), Fail},
		"few inodes":              {disk(100*gib, 50*gib, 1000, 99), Warn},
		"no inodes":               {disk(100*gib, 50*gib, 1000, 9), Fail},
		"btrfs counts no inodes":  {disk(100*gib, 50*gib, 0, 0), OK},
		"it is mounted read-only": {unix.Statfs_t{Flags: unix.ST_RDONLY, Bsize: 4096, Blocks: 1 << 30, Bavail: 1 << 30}, Fail},
	} {
		text, got := judgeDisk("/data", c.st)
		require.Equal(t, c.want, got, "%s: %s", name, text)
		require.Contains(t, text, "/data")
	}
}

func TestDisksAreNamedOnce(t *testing.T) {
	e := hostWith(t, map[string]string{"/data/volumes/a": ""})
	e.Config.Config.Storage = v1.StorageConfig{DataPath: "/data", VolumesPath: "/data/volumes"}
	r := checkDisk(t.Context(), e)
	require.Regexp(t, `^the disk of /data has [^;]* free[^;]*$`, r.Message)
	e.Config.Config.Storage.DataPath = "/not/there/yet"
	require.Contains(t, checkDisk(t.Context(), e).Message, "the disk of /not/there/yet has")
}

func TestInotify(t *testing.T) {
	limits := func(instances, watches string) *examination {
		return hostWith(t, map[string]string{"/proc/sys/fs/inotify/max_user_instances": instances + "\n", "/proc/sys/fs/inotify/max_user_watches": watches + "\n"})
	}
	require.Equal(t, OK, checkInotify(t.Context(), limits("128", "8192")).Status)
	require.Equal(t, Warn, checkInotify(t.Context(), limits("73", "8192")).Status, "10 containers and 64 others")
	require.Equal(t, Warn, checkInotify(t.Context(), limits("128", "8191")).Status)
	require.Equal(t, Warn, checkInotify(t.Context(), limits("many", "1")).Status)
	require.Equal(t, Warn, checkInotify(t.Context(), hostWith(t, nil)).Status)
}

func TestFileLimits(t *testing.T) {
	require.Equal(t, OK, judgeFiles(65536, 100, true).Status)
	require.Equal(t, Warn, judgeFiles(1024, 100, true).Status)
	require.Equal(t, Fail, judgeFiles(65536, 60000, true).Status)
	require.Equal(t, OK, judgeFiles(65536, 0, false).Status)
	require.Equal(t, Warn, judgeFiles(1024, 0, false).Status)

	e := hostWith(t, map[string]string{"/proc/sys/fs/file-nr": "900 0 1000\n"})
	require.Equal(t, Fail, checkFiles(t.Context(), e).Status, "the host's table is nearly full")
	e = hostWith(t, map[string]string{"/proc/sys/fs/file-nr": "1000 0 1000000\n"})
	e.daemon = func() daemonState {
		return askDaemon(t.Context(), newFakeDaemon(t, map[string]string{"/readyz": "{}", "/metrics": "process_max_fds 512\nprocess_open_fds 40\n"}))
	}
	require.Equal(t, "the daemon may open 512 files, and has 40 open", checkFiles(t.Context(), e).Message)
}

func TestFirewall(t *testing.T) {
	e := hostWith(t, nil)
	e.Config.Config.Firewall.Backend = v1.BackendNone
	require.Equal(t, ok("firewall.backend is none: berth changes no rules"), checkFirewall(t.Context(), e))
	e.Config.Config.Firewall.Backend = v1.BackendAuto
	r := checkFirewall(t.Context(), e)
	require.Equal(t, OK, r.Status, r.Message)
	require.Contains(t, r.Message, "iptables v")
}

func TestFirewalld(t *testing.T) {
	require.Equal(t, OK, checkFirewalld(t.Context(), hostWith(t, map[string]string{"/proc/1/comm": "systemd\n", "/proc/self/comm": "firewalld\n"})).Status)
	r := checkFirewalld(t.Context(), hostWith(t, map[string]string{"/proc/77/comm": "firewalld\n"}))
	require.Equal(t, Warn, r.Status)
	require.Contains(t, r.Remedy, "firewall-cmd")
}

func TestClock(t *testing.T) {
	require.Equal(t, OK, judgeClock(false).Status)
	require.Equal(t, Warn, judgeClock(true).Status)
	require.NotContains(t, checkClock(t.Context(), nil).Message, "cannot ask", "of this host")
}
