//go:build cluster

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/kubetest"
)

// TestStorage: the files of a volume are in the claim that it names, for its server and for the file routes. A claim
// that berth has not mounted where it should starts no server with an empty volume.
func TestStorage(t *testing.T) {
	t.Parallel()
	b := berthtest.Prepare(t, berthtest.Options{Env: []string{"BERTH_STORAGE_HARD_LIMIT=off", "BERTH_KUBERNETES_CLAIMS=fast=fast:64MiB,lost=lost"}})
	claims := filepath.Join(b.Data, "claims")
	for _, name := range []string{"fast", "lost"} {
		require.NoError(t, os.MkdirAll(filepath.Join(claims, name), 0o755))
		require.NoError(t, os.Chmod(filepath.Join(claims, name), 0o755))
	}
	require.NoError(t, os.Chmod(claims, 0o755))
	b.Cluster.MakeClaim(t, "fast", filepath.Join(claims, "fast"))
	b.Cluster.MakeClaim(t, "lost", kubetest.Dir(t))
	b.Run(t)
	b.Ready(t)

	var v struct {
		VolumeID  string `json:"volume_id"`
		Path      string `json:"path"`
		SizeLimit int64  `json:"size_limit"`
	}
	in := func(storage string) string {
		b.Post(t, "/volumes", map[string]any{"storage": storage}).Decode(t, &v)
		b.Get(t, "/volumes/"+v.VolumeID, &v)
		require.Equal(t, filepath.Join(claims, storage, v.VolumeID), v.Path)
		return v.VolumeID
	}
	volume := in("fast")
	require.EqualValues(t, 64<<20, v.SizeLimit)
	b.Must(t, "PUT", "/volumes/"+volume+"/files/content?path=given", "by berth")
	b.Started(t, "mc", berthtest.Spec{"volume_id": volume, "startup_command": "cat given >taken; sleep 100000"})
	berthtest.Until(t, wait, "the server has read and written", func() bool {
		text, _ := os.ReadFile(filepath.Join(claims, "fast", volume, "taken"))
		return string(text) == "by berth"
	})
	require.Equal(t, "by berth", string(b.Must(t, "GET", "/volumes/"+volume+"/files/content?path=taken", nil).Body))
	require.Equal(t, "fast", b.Cluster.Pods(t, "mc")[0].Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	b.Verb(t, "mc", "start")
	b.State(t, "mc", "running")
	b.Delete(t, "mc")

	b.Made(t, "lost", berthtest.Spec{"volume_id": in("lost"), "startup_command": "touch ran; sleep 100000", "restart_policy": map[string]any{"mode": "never"}})
	b.Verb(t, "lost", "start")
	require.NotZero(t, *b.State(t, "lost", "exit").ExitCode, "there is no keeper")
	require.NoFileExists(t, filepath.Join(v.Path, "ran"))

	var n v1.Node
	b.Get(t, "/node", &n)
	require.Equal(t, n.Disk.Volumes.Total, n.Disk.Claims["fast"].Total)
	require.Len(t, n.Disk.Claims, 2)
	text, err := exec.Command(berthtest.Binary(t), "node", "--config", b.Config).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Contains(t, string(text), "claim fast")
	require.Contains(t, string(b.Must(t, "GET", "/metrics", nil).Body), `berth_disk_free_bytes{disk="claims/fast"} `)

	require.Equal(t, 400, b.Do(t, "POST", "/volumes", map[string]any{"storage": "none"}).Status)
	b.Must(t, "DELETE", "/volumes/"+volume, nil)
	berthtest.Until(t, wait, "the directory is gone", func() bool {
		_, err := os.Stat(filepath.Join(claims, "fast", volume))
		return os.IsNotExist(err)
	})
}
