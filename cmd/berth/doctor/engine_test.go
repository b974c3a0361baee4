package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func TestJudgeVersion(t *testing.T) {
	for version, want := range map[string]Status{
		"19.03.15": Fail, "18.9": Fail, "20.10.0": OK, "20.10.24+dfsg1": OK, "26.1.5": OK, "28.5.2": OK, "28.6.0": Warn, "29.0.0-rc.1": Warn,
	} {
		require.Equal(t, want, judgeVersion(runtime.EngineInfo{Version: version}).Status, version)
	}
}

func TestJudgeDefects(t *testing.T) {
	old := judgeDefects("20.10.24+dfsg1")
	require.Equal(t, Warn, old.Status)
	require.Contains(t, old.Message, "repeats a rotated log file")
	require.Equal(t, "install Docker 23.0 or newer", old.Remedy)
	require.Equal(t, OK, judgeDefects("23.0.0").Status)
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
	good := runtime.EngineInfo{Version: "28.5.2", LiveRestore: true, StorageDriver: "overlay2", CgroupVersion: "2",
		Limits: runtime.EngineLimits{Memory: true, Swap: true, CPU: true, Pids: true}}
	for name, bad := range map[string]func(*runtime.EngineInfo){
		"engine":         func(i *runtime.EngineInfo) { i.Version = "17.12" },
		"engine-defects": func(i *runtime.EngineInfo) { i.Version = "20.10.5" },
		"live-restore":   func(i *runtime.EngineInfo) { i.LiveRestore = false },
		"storage-driver": func(i *runtime.EngineInfo) { i.StorageDriver = "vfs" },
		"cgroup":         func(i *runtime.EngineInfo) { i.CgroupVersion = "1" },
		"limits":         func(i *runtime.EngineInfo) { i.Limits.Memory = false },
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
