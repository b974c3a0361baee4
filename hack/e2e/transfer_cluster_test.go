//go:build cluster

package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
)

// TestTransferBetweenEngines moves a container that writes all the time from Docker to the cluster and back. Its files, its
// labels, its port, its schedule, its policy and its backup go with it. What the engine of the destination lacks is refused when
// the container is announced, and the container runs on.
func TestTransferBetweenEngines(t *testing.T) {
	t.Parallel()
	engine := enginetest.StartIsolated(t)
	engine.Import(t, kubetest.Image(t), enginetest.BusyboxTar(t), `CMD ["sh"]`)
	n := nodes{berthtest.Start(t, berthtest.Options{Engine: engine.Client}), berthtest.Start(t, berthtest.Options{})}
	volume, ports := n.a.Volume(t), []v1.PortRef{{IP: "127.0.0.1", Port: berthtest.FreePort(t), Protocol: "tcp"}, n.b.Port(t)}
	require.NoError(t, n.a.API.Ports().Add(t.Context(), ports[0]))
	spec := berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper, "image": kubetest.Image(t),
		"power": "running", "ports": []v1.PortRef{ports[0]}, "labels": map[string]string{"customer": "7"}}
	n.a.Started(t, "mc", spec.With(berthtest.Spec{"limits": map[string]any{"pids": 100}}))
	dir := filepath.Join(n.a.Data, "volumes", volume)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world"), []byte("as it was"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "kept"), 0o750))
	prepareTree(t, filepath.Join(dir, "kept"))
	kept := fullTree(t, filepath.Join(dir, "kept"))
	n.a.Must(t, "PUT", "/containers/mc/schedules/nightly", map[string]any{"cron": "@yearly", "steps": []map[string]any{{"command": "x"}}})
	n.a.Must(t, "PUT", "/volumes/"+volume+"/backup-policy", map[string]any{"every": "1d", "keep": 2})
	backup := startBackup(t, n.a, volume, map[string]any{"ignore": []string{"stamps", "last"}})
	require.Equal(t, "completed", backedUp(t, n.a, backup).State)

	refused := func(from, to *berthtest.Berth, at v1.TransferPort, what string) {
		t.Helper()
		v := ended(t, from, n.move(t, from, to, map[string]any{"ports": []v1.TransferPort{at}}))
		require.Equal(t, v1.TransferFailed, v.State)
		require.Contains(t, v.Message, "The destination answers: ")
		require.Contains(t, v.Message, what)
		require.Len(t, from.Processes(t), 1, "it runs on")
		require.Equal(t, 404, to.Do(t, "GET", "/volumes/"+volume, nil).Status)
	}
	there := mapped(ports[0], ports[1])
	refused(n.a, n.b, there, "limits.pids: must be left out: the engine kubernetes lacks pids")
	n.a.Must(t, "PUT", "/containers/mc", spec)

	movedTo := func(from, to *berthtest.Berth, at v1.TransferPort) {
		t.Helper()
		before := backedUp(t, from, backup)
		v := ended(t, from, n.move(t, from, to, map[string]any{"backups": true, "ports": []v1.TransferPort{at}}))
		require.Equal(t, v1.TransferCompleted, v.State, v.Message)
		require.Equal(t, []string{backup}, v.Backups)
		c := to.State(t, "mc", "running")
		require.Equal(t, 1, n.running(t))
		require.Equal(t, map[string]string{"customer": "7"}, c.Labels)
		require.Equal(t, []v1.PortRef{{IP: at.To.IP, Port: at.To.Port, Protocol: "tcp"}}, c.Bindings())
		require.Empty(t, cmp.Diff(kept, fullTree(t, filepath.Join(to.Data, "volumes", volume, "kept"))))
		checkStamps(t, to, volume)
		to.Must(t, "GET", "/containers/mc/schedules/nightly", nil)
		to.Must(t, "GET", "/volumes/"+volume+"/backup-policy", nil)
		after := backedUp(t, to, backup)
		before.Restores, after.Restores = nil, nil // each node lists its own
		require.Equal(t, before, after)
		gone(t, from, "/volumes/"+volume)
		gone(t, from, "/backups/"+backup)
	}
	movedTo(n.a, n.b, there)
	restoresWorld(t, n.b, volume, backup)
	n.b.State(t, "mc", "running")
	movedTo(n.b, n.a, mapped(ports[1], ports[0]))
	restoresWorld(t, n.a, volume, backup)
}

// mapped returns that a container has one port in place of another one after a transfer.
func mapped(from, to v1.PortRef) v1.TransferPort {
	return v1.TransferPort{IP: from.IP, Port: from.Port, Protocol: from.Protocol, To: v1.PortAddress{IP: to.IP, Port: to.Port}}
}
