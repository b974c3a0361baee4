package e2e_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// TestNode compares GET /node with the host and its engine, and reads it while the engine
// is frozen.
func TestNode(t *testing.T) {
	t.Parallel()
	b := berthtest.Prepare(t, berthtest.Options{Config: "remote: {node: node-7}\ndebug: {pprof: true}\n"})
	proxy := enginetest.StartProxy(t, b.Engine)
	b.Env("DOCKER_HOST=" + proxy.Host())
	b.Run(t)
	b.Ready(t)
	b.Started(t, "mc", berthtest.Spec{"limits": berthtest.Spec{"memory": 64 << 20, "cpu": 0.5, "disk": 1 << 30}})
	b.Made(t, "idle", berthtest.Spec{"limits": berthtest.Spec{"memory": 16 << 20}})
	node := func() (n v1.Node) {
		b.Get(t, "/node", &n)
		return n
	}
	berthtest.Until(t, wait, "the engine and the disks are observed", func() bool { n := node(); return n.Engine.Version != "" && n.Disk.Data.Total > 0 })
	n := node()
	require.Equal(t, "node-7", n.Node)
	require.Equal(t, b.Engine.Version(t), n.Engine.Version)
	require.Equal(t, cgroups(t, b), n.Engine.CgroupVersion)
	require.True(t, n.Engine.Reachable)
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(kernel)), n.Kernel)
	require.Equal(t, runtime.NumCPU(), n.CPUs)
	require.Greater(t, n.Memory, int64(64<<20))
	require.Greater(t, n.Disk.Volumes.Total, n.Disk.Volumes.Free)
	require.Equal(t, v1.Allocated{Memory: 80 << 20, CPU: 0.5, Disk: 1 << 30}, n.Allocated)
	require.Equal(t, 1, n.Containers[v1.Running])
	require.Equal(t, 1, n.Containers[v1.Ready])
	require.True(t, n.Features["pprof"])
	text, err := exec.Command(berthtest.Binary(t), "node", "--config", b.Config).CombinedOutput()
	require.NoError(t, err, string(text))
	for _, part := range []string{"node-7", n.Engine.Version, "1 ready, 1 running", "pprof", "80MiB allocated"} {
		require.Contains(t, string(text), part)
	}
	require.Contains(t, string(b.Do(t, "GET", "/debug/pprof/goroutine?debug=1", nil).Body), "goroutine profile")

	proxy.Inject(enginetest.Hang, enginetest.All)
	defer proxy.Clear()
	berthtest.Until(t, wait, "the engine does not answer", func() bool { return !node().Engine.Reachable })
	require.Equal(t, n.Engine.Version, node().Engine.Version, "it keeps what is known")
}
