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
	e.engine = func() (runtime.EngineInfo, error) { return runtime.EngineInfo{}, nil }
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
	require.Regexp(t, `^the disk of /data has [^;]* free[^;]*; limits of volumes are soft: storage.hard_limit is off$`, r.Message)
	e.Config.Config.Storage.HardLimit = v1.HardLimitAuto
	require.Contains(t, checkDisk(t.Context(), e).Message, "; limits of volumes are soft: the file system of the volumes has no project quotas")
	e.Config.Config.Kubernetes.Claims = map[string]v1.VolumeClaim{"fast": {Claim: "berth-fast"}}
	require.NoError(t, os.MkdirAll(e.path("/data/claims"), 0o755))
	require.NoError(t, os.Symlink("/proc", e.path("/data/claims/fast"))) // another file system
	require.Contains(t, checkDisk(t.Context(), e).Message, "; the disk of /data/claims/fast has")
	e.Config.Config.Kubernetes.Claims = nil
	e.Config.Config.Storage.DataPath = "/not/there/yet"
	require.Contains(t, checkDisk(t.Context(), e).Message, "the disk of /not/there/yet has")
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

func TestClock(t *testing.T) {
	require.Equal(t, OK, judgeClock(false).Status)
	require.Equal(t, Warn, judgeClock(true).Status)
	require.NotContains(t, checkClock(t.Context(), nil).Message, "cannot ask", "of this host")
}

func TestJudgeVersion(t *testing.T) {
	for version, want := range map[string]Status{
		"19.03.15": Fail, "18.9": Fail, "20.10.0": Warn, "20.10.24+dfsg1": Warn, "23.0.0": OK, "26.1.5": OK, "28.5.2": OK, "28.6.0": Warn, "29.0.0-rc.1": Warn,
	} {
		require.Equal(t, want, judgeVersion(runtime.EngineInfo{Version: version}).Status, version)
	}
	old := judgeVersion(runtime.EngineInfo{Version: "20.10.24+dfsg1"})
	require.Contains(t, old.Message, "repeats a rotated log file")
	require.Contains(t, old.Message, "A UDP client that keeps sending")
	require.Equal(t, "install Docker 23.0 or newer", old.Remedy)
}

func TestJudgeLimits(t *testing.T) {
	all := runtime.EngineLimits{Memory: true, Swap: true, CPU: true, Pids: true}
	require.Equal(t, OK, judgeLimits(all).Status)
	for name, change := range map[string]func(*runtime.EngineLimits){
		"memory":    func(l *runtime.EngineLimits) { l.Memory = false },
		"cpu":       func(l *runtime.EngineLimits) { l.CPU = false },
		"processes": func(l *runtime.EngineLimits) { l.Pids = false },
	} {
		l := all
		change(&l)
		r := judgeLimits(l)
		require.Equal(t, Fail, r.Status)
		require.Contains(t, r.Message, "does not limit "+name)
	}
	all.Swap = false
	require.Equal(t, Warn, judgeLimits(all).Status)
}

// TestEngineChecks: each check on an engine with a fault of its own, and without an engine.
func TestEngineChecks(t *testing.T) {
	good := runtime.EngineInfo{Version: "28.5.2",
		Limits: runtime.EngineLimits{Memory: true, Swap: true, CPU: true, Pids: true}}
	for name, bad := range map[string]func(*runtime.EngineInfo){
		"engine": func(i *runtime.EngineInfo) { i.Version = "17.12" },
		"limits": func(i *runtime.EngineInfo) { i.Limits.Memory = false },
	} {
		on := func(i runtime.EngineInfo, err error) Result {
			return find(t, name)(t.Context(), &examination{engine: func() (runtime.EngineInfo, error) { return i, err }})
		}
		require.Equal(t, OK, on(good, nil).Status, name)
		broken := good
		bad(&broken)
		for _, r := range []Result{on(broken, nil), on(runtime.EngineInfo{}, runtime.ErrUnavailable)} {
			require.NotEqual(t, OK, r.Status, name)
			require.NotEmpty(t, r.Remedy, name)
		}
	}
}

func TestIsMount(t *testing.T) {
	require.True(t, isMount("/proc"))
	require.False(t, isMount(t.TempDir()))
}

// TestJudgeCluster: what berth may not do comes before what is only wrong with nodes.
func TestJudgeCluster(t *testing.T) {
	info := runtime.EngineInfo{Version: "1.37.2", Machines: []runtime.Machine{{Name: "n1", Ready: true}}}
	require.Equal(t, OK, judgeCluster([]string{"/proc"}, info, nil).Status)
	info.Machines = append(info.Machines, runtime.Machine{Name: "n2"})
	got := judgeCluster([]string{"/proc"}, info, nil)
	require.Equal(t, Warn, got.Status)
	require.Contains(t, got.Message, "n2")
	info.Foreign = []string{"berth-other-server-1"}
	got = judgeCluster([]string{"/proc"}, info, nil)
	require.Equal(t, Warn, got.Status)
	require.Contains(t, got.Message, "berth-other-server-1")
	bare := t.TempDir()
	got = judgeCluster([]string{"/proc", bare}, info, nil)
	require.Equal(t, Warn, got.Status)
	require.Contains(t, got.Message, ": "+bare+" is not a mount")
	info.Denied = []string{"patch pods/resize", "create, update leases"}
	got = judgeCluster([]string{"/proc"}, info, nil)
	require.Equal(t, Fail, got.Status)
	require.Contains(t, got.Message, "may not patch pods/resize; create, update leases")
	require.Contains(t, got.Remedy, "role.yaml")
}
