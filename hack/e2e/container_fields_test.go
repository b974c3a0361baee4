package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/runtime/keeper"
)

// names prints which names of a container Docker's DNS has.
const names = "for n in mc mc.example.invalid; do nslookup -type=a $n 127.0.0.11 >/dev/null 2>&1 && echo resolves $n; done; "

// TestContainerFieldsReachTheEngine sends the fields of a container that no other test
// sends, and reads them from the engine and from within the container.
func TestContainerFieldsReachTheEngine(t *testing.T) {
	t.Parallel()
	w := newMountTest(t)
	p := w.Port(t)
	w.Create(t, "mc", berthtest.Spec{
		"startup_command": "id -u; id -g; pwd; grep -o mc.example.invalid.mc /etc/hosts; " + names + " touch /maps/new || echo read-only; trap 'echo stopped; exit 0' INT; echo up; while :; do sleep 0.1; done",
		"start_pattern":   "^up", "power": "running", "tty": false,
		"user": "1234:4321", "workdir": "/tmp/work", "hostname": "mc.example.invalid", "cpuset": "0", "shm_size": 32 << 20,
		"limits": berthtest.Spec{"memory": 64 << 20, "cpu": 0.5, "swap": 32 << 20, "pids": 77, "disk": 1 << 30, "io_weight": 300},
		"ports":  []berthtest.Spec{{"ip": p.IP, "port": p.Port, "protocol": "tcp", "container_port": 25565}},
		"mounts": []berthtest.Spec{{"source": filepath.Join(w.shared, "maps"), "target": "/maps", "read_only": true}},
		"stop":   berthtest.Spec{"signal": "SIGINT", "timeout": "20s"},
	})
	c := w.State(t, "mc", "running")
	one, found := w.Engine.Inspect(t, c.ContainerID)
	require.True(t, found)
	config, host := one.Raw["Config"].(map[string]any), one.Raw["HostConfig"].(map[string]any)
	for name, want := range map[string]any{"User": "1234:4321", "WorkingDir": "/tmp/work", "Hostname": "mc", "Domainname": "example.invalid", "StopSignal": "SIGINT", "StopTimeout": 20.0, "Tty": false} {
		require.Equal(t, want, config[name], name)
	}
	for name, want := range map[string]any{"Memory": 64 << 20, "MemorySwap": 96 << 20, "NanoCpus": 5e8, "PidsLimit": 77 + keeper.Pids, "CpusetCpus": "0", "ShmSize": 32 << 20} {
		require.EqualValues(t, want, host[name], name)
	}
	require.Equal(t, fmt.Sprint(p.Port), one.NetworkSettings.Ports["25565/tcp"][0].HostPort)
	w.Verb(t, "mc", "stop")
	w.State(t, "mc", "exit")
	logs := string(w.Must(t, "GET", "/containers/mc/logs", nil).Body)
	for _, line := range []string{"1234", "4321", "/tmp/work", "mc.example.invalid mc", `resolves mc"`, "read-only", "stopped"} {
		require.Contains(t, logs, line)
	}
	require.NotContains(t, logs, "resolves mc.example.invalid", "a hostname must not replace a name of the Internet for other containers")
	_, err := os.Stat(filepath.Join(w.shared, "maps", "new"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Contains(t, string(w.Must(t, "GET", "/containers/mc", nil).Body), `"io_weight":300`)
	require.Contains(t, string(w.Must(t, "GET", "/containers/mc", nil).Body), `"disk":1073741824`)

	placed := w.Do(t, "POST", "/containers", berthtest.Spec{"internal_id": "placed", "image": "busybox", "volume_id": w.Volume(t), "placement": berthtest.Spec{
		"node_selector": berthtest.Spec{"pool": "games"}, "runtime_class": "gvisor", "priority_class": "high",
		"tolerations": []berthtest.Spec{{"key": "dedicated", "value": "games", "effect": "NoSchedule"}}}})
	require.Equal(t, 400, placed.Status, "the nodes of a cluster")
	require.Contains(t, string(placed.Body), "placement: ")
}
