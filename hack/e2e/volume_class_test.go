//go:build cluster

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// claimsOf returns the claims of the class of a test, by their names.
func claimsOf(t *testing.T, b *berthtest.Berth) map[string]core1.PersistentVolumeClaim {
	t.Helper()
	all := map[string]core1.PersistentVolumeClaim{}
	for _, c := range b.Cluster.Claims(t) {
		if *c.Spec.StorageClassName == b.Cluster.Name {
			all[c.Name] = c
		}
	}
	return all
}

// requested returns the bytes that the claim of a volume requests.
func requested(t *testing.T, b *berthtest.Berth, volume string) int64 {
	t.Helper()
	bytes := claimsOf(t, b)[volume].Spec.Resources.Requests[core1.ResourceStorage]
	return bytes.Value()
}

// TestVolumeClass: each volume has a claim of its own, from its creation to its deletion. Each path is that of its files.
func TestVolumeClass(t *testing.T) {
	t.Parallel()
	b := berthtest.Prepare(t, berthtest.Options{})
	b.Env("BERTH_KUBERNETES_VOLUME_CLASS="+b.Cluster.Name, "BERTH_KUBERNETES_VOLUME_SIZE=64MiB")
	b.Run(t)
	b.Ready(t)
	view := func(id string) (v v1.VolumeView) {
		b.Get(t, "/volumes/"+id, &v)
		return v
	}
	create := func(body map[string]any) string {
		var v v1.VolumeView
		b.Post(t, "/volumes", body).Decode(t, &v)
		return v.VolumeID
	}

	// The class is missing. The volume and its container name it, and wait.
	one := create(map[string]any{"size_limit": 32 << 20})
	berthtest.Until(t, wait, "the volume names its class", func() bool {
		return strings.Contains(view(one).Message, `"`+b.Cluster.Name+`" not found`)
	})
	require.False(t, view(one).Ready)
	require.NoDirExists(t, filepath.Join(b.Cluster.Volumes, one), "only its class may make it")
	b.Create(t, "mc", berthtest.Spec{"volume_id": one, "startup_command": "cat given >taken; sleep 100000"})
	berthtest.Until(t, wait, "the container names its class", func() bool {
		return strings.Contains(string(b.Container(t, "mc").Message), `"`+b.Cluster.Name+`" not found`)
	})

	// berth ends between the request of the claim and the volume.
	b.Kill9(t)
	b.Cluster.Provision(t, b.Cluster.Name)
	berthtest.Until(t, wait, "the claim is bound", func() bool { return claimsOf(t, b)[one].Status.Phase == core1.ClaimBound })
	b.Run(t)
	b.Ready(t)
	b.State(t, "mc", "ready")
	require.True(t, view(one).Ready)
	require.Empty(t, view(one).Message)
	require.EqualValues(t, 32<<20, requested(t, b, one))

	b.Must(t, "PUT", "/volumes/"+one+"/files/content?path=given", "by berth")
	b.Verb(t, "mc", "start")
	b.State(t, "mc", "running")
	berthtest.Until(t, wait, "the server has read and written", func() bool {
		answer := b.Do(t, "GET", "/volumes/"+one+"/files/content?path=taken", nil)
		return answer.Status == 200 && string(answer.Body) == "by berth"
	})
	pod := b.Cluster.Pods(t, "mc")[0]
	require.Equal(t, one, pod.Spec.Volumes[1].PersistentVolumeClaim.ClaimName)
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		require.Equal(t, m.MountPath == v1.Home, m.SubPath == "" && m.Name == pod.Spec.Volumes[1].Name, m)
	}

	// Another tenant has another claim, whose size follows its limit.
	two := create(map[string]any{})
	require.NotEqual(t, one, two)
	b.Made(t, "other", berthtest.Spec{"volume_id": two})
	require.EqualValues(t, 64<<20, requested(t, b, two), "without a limit")
	limited := b.Body(t, "other", berthtest.Spec{"volume_id": two, "limits": map[string]any{"disk": 128 << 20}})
	delete(limited, "internal_id")
	b.Must(t, "PUT", "/containers/other", limited)
	berthtest.Until(t, wait, "the claim has grown", func() bool {
		return requested(t, b, two) == 128<<20
	})

	// A restore leaves the directory, which the cluster knows.
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	before, err := os.Stat(filepath.Join(b.Cluster.Volumes, one))
	require.NoError(t, err)
	backup := backedUp(t, b, startBackup(t, b, one, nil)).ID
	b.Must(t, "PUT", "/volumes/"+one+"/files/content?path=given", "by nobody")
	state, message := restored(t, b, backup, nil)
	require.Equal(t, "completed", state, message)
	after, err := os.Stat(filepath.Join(b.Cluster.Volumes, one))
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	b.Verb(t, "mc", "start")
	b.State(t, "mc", "running")
	berthtest.Until(t, wait, "the server has what was restored", func() bool {
		return string(b.Must(t, "GET", "/volumes/"+one+"/files/content?path=taken", nil).Body) == "by berth"
	})

	b.Delete(t, "mc")
	b.Must(t, "DELETE", "/volumes/"+one, nil)
	berthtest.Until(t, wait, "the claim and the directory are gone", func() bool {
		_, err := os.Stat(filepath.Join(b.Cluster.Volumes, one))
		_, has := claimsOf(t, b)[one]
		return os.IsNotExist(err) && !has
	})
	require.Contains(t, claimsOf(t, b), two)
}
