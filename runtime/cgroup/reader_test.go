package cgroup

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

const id = "0123abcd"

// host writes the files of a host below a directory.
func host(t *testing.T, files map[string]string) (cgroups, proc string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return filepath.Join(dir, "cgroup"), filepath.Join(dir, "proc")
}

const netDev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:      77       0    0    0    0     0          0         0       77       0    0    0    0     0       0          0
  eth0:     200       2    0    0    0     0          0         0       90       0    0    0    0     0       0          0
  eth1:       1       2    0    0    0     0          0         0        2       0    0    0    0     0       0          0
`

func v1Files(dir string) map[string]string {
	return map[string]string{
		"proc/meminfo":                                             "MemTotal:        1000 kB\nMemFree: 1 kB\n",
		"proc/42/net/dev":                                          netDev,
		"cgroup/memory/" + dir + "/cgroup.procs":                   "42\n43\n",
		"cgroup/memory/" + dir + "/memory.usage_in_bytes":          "5000\n",
		"cgroup/memory/" + dir + "/memory.limit_in_bytes":          "9223372036854771712\n",
		"cgroup/memory/" + dir + "/memory.stat":                    "cache 9\ninactive_file 8\ntotal_inactive_file 1000\n",
		"cgroup/cpuacct/" + dir + "/cpuacct.usage":                 "20843483\n",
		"cgroup/pids/" + dir + "/pids.current":                     "3\n",
		"cgroup/blkio/" + dir + "/blkio.throttle.io_service_bytes": "8:0 Read 10\n8:0 Write 20\n8:0 Total 30\n8:16 Read 1\n8:16 Write 2\nTotal 33\n",
	}
}

func v2Files(dir string) map[string]string {
	return map[string]string{
		"proc/meminfo":                      "MemTotal:        1000 kB\n",
		"proc/42/net/dev":                   netDev,
		"cgroup/cgroup.controllers":         "cpu io memory pids\n",
		"cgroup/" + dir + "/cgroup.procs":   "42\n",
		"cgroup/" + dir + "/memory.current": "5000\n",
		"cgroup/" + dir + "/memory.max":     "9000\n",
		"cgroup/" + dir + "/memory.stat":    "anon 1\ninactive_file 1000\nactive_file 5\n",
		"cgroup/" + dir + "/cpu.stat":       "usage_usec 20843\nuser_usec 1\nsystem_usec 2\n",
		"cgroup/" + dir + "/pids.current":   "3\n",
		"cgroup/" + dir + "/io.stat":        "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=1 wbytes=2 rios=9\n",
	}
}

func TestReaderV1AndV2(t *testing.T) {
	want := runtime.Stats{Memory: 4000, NetworkRx: 201, NetworkTx: 92, BlockRead: 11, BlockWrite: 22, Pids: 3}
	for _, tt := range []struct {
		name  string
		files map[string]string
		cpu   time.Duration
		limit int64
	}{
		{"v1", v1Files("docker/" + id), 20843483, 1000 << 10},
		{"v1 systemd", v1Files("system.slice/docker-" + id + ".scope"), 20843483, 1000 << 10},
		{"v2", v2Files("docker/" + id), 20843 * time.Microsecond, 9000},
		{"v2 systemd", v2Files("system.slice/docker-" + id + ".scope"), 20843 * time.Microsecond, 9000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cgroups, proc := host(t, tt.files)
			got, err := newReader(cgroups, proc, nil).Stats(t.Context(), id)
			require.NoError(t, err)
			require.False(t, got.Read.IsZero())
			want := want
			want.Read, want.CPU, want.MemoryLimit = got.Read, tt.cpu, tt.limit
			require.Equal(t, want, got)
		})
	}
}

func TestReaderFollowsProcess(t *testing.T) {
	files := v1Files("docker/" + id)
	cgroups, proc := host(t, files)
	r := newReader(cgroups, proc, nil)
	_, err := r.Stats(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(proc, "42"), filepath.Join(proc, "43")))
	require.NoError(t, os.WriteFile(filepath.Join(cgroups, "memory/docker", id, "cgroup.procs"), []byte("43\n"), 0o600))
	got, err := r.Stats(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, 201, got.NetworkRx)
}

type other struct{ asked []string }

func (o *other) Stats(_ context.Context, id string) (runtime.Stats, error) {
	o.asked = append(o.asked, id)
	return runtime.Stats{Memory: 7}, nil
}

func TestReaderFallback(t *testing.T) {
	gone := v1Files("docker/" + id)
	gone["cgroup/memory/docker/"+id+"/cgroup.procs"] = "" // nothing runs
	hidden := v1Files("docker/" + id)
	hidden["cgroup/memory/docker/"+id+"/cgroup.procs"] = "0\n" // of another pid namespace
	broken := v1Files("docker/" + id)
	broken["cgroup/cpuacct/docker/"+id+"/cpuacct.usage"] = "?"
	for name, files := range map[string]map[string]string{"gone": gone, "hidden": hidden, "broken": broken, "none": {}} {
		t.Run(name, func(t *testing.T) {
			cgroups, proc := host(t, files)
			next := &other{}
			got, err := newReader(cgroups, proc, next).Stats(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, runtime.Stats{Memory: 7}, got)
			require.Equal(t, []string{id}, next.asked)
			_, err = newReader(cgroups, proc, nil).Stats(t.Context(), id)
			require.ErrorIs(t, err, runtime.ErrNotRunning)
			_, err = newReader(cgroups, proc, nil).Stats(t.Context(), "../"+id)
			require.ErrorIs(t, err, runtime.ErrNotRunning)
		})
	}
}
