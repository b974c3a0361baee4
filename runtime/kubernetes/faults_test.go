//go:build cluster

package kubernetes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
	"berth/runtime"
)

// rounds returns how often a test does something at a random moment.
func rounds(short, long int) int {
	if os.Getenv("BERTH_LONG") != "" {
		return long
	}
	return short
}

// writing returns s with a program that writes to a volume all the time, and its file.
func (c cluster) writing(t *testing.T, s runtime.Spec) (_ runtime.Spec, stamps string) {
	t.Helper()
	volume := filepath.Join(c.cfg.Volumes, hash(s.Name.ID))
	require.NoError(t, os.Mkdir(volume, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(volume, "writer"), kubetest.Writer(t), 0o755))
	s.Mounts = []runtime.Mount{{Source: volume, Target: "/home/container"}}
	s.Command = []string{"/home/container/writer", "/home/container/stamps", kubetest.ListenToWriters(t).Addr}
	return s, filepath.Join(volume, "stamps")
}

// testDeletedByForce deletes the pod of a container with grace period 0 at a random moment of its
// start, and starts the container again at once. It must have one writer at a time.
func testDeletedByForce(t *testing.T, c cluster, s runtime.Spec) {
	s, stamps := c.writing(t, s)
	_, err := c.Create(t.Context(), s)
	require.NoError(t, err)
	for range rounds(4, 40) {
		before := kubetest.LastRun(t, stamps)
		deleted := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
			pod := "/api/v1/namespaces/" + c.cfg.Namespace + "/pods/" + c.podName(s.Name)
			deleted <- c.admin.api().Delete().AbsPath(pod).Body([]byte(`{"gracePeriodSeconds": 0}`)).Do(t.Context()).Error()
		}()
		c.begin(t, s.Name)
		if err := <-deleted; !apierrors.IsNotFound(err) { // the pod before was gone, and the next one not there
			require.NoError(t, err)
		}
		enginetest.Until(t, 3*time.Minute, "a run that nobody deletes", func() bool {
			err := c.Start(t.Context(), s.Name)
			require.True(t, err == nil || errors.Is(err, runtime.ErrStarting), "%v", err)
			return err == nil && c.pod(t, s.Name).DeletionTimestamp == nil
		})
		kubetest.AwaitAnotherRun(t, stamps, before)
		kubetest.Runs(t, stamps) // requires one writer at a time
		require.NoError(t, c.Kill(t.Context(), s.Name))
	}
}

// testLimitWithoutRoom raises a limit beyond what the node can give now.
func testLimitWithoutRoom(t *testing.T, c cluster, s runtime.Spec) {
	var node core1.Node
	require.NoError(t, c.admin.api().Get().Resource("nodes").Name("n1").Do(t.Context()).Into(&node))
	all := node.Status.Allocatable.Memory().Value()
	c.cfg.RequestsShare = 0.5
	engine, err := New(c.cfg, nil, c.log)
	require.NoError(t, err)
	image, _ := c.images.get(s.Image)
	engine.images.put(s.Image, image)
	c.Engine = engine
	s.Ports = []runtime.Port{{IP: "10.77.0.101", Port: 21300, ContainerPort: 25565, Protocol: "tcp"}} // on n1
	s.Live = runtime.Live{Memory: 64 << 20}
	rival := s
	rival.Name.ID, rival.Ports = s.Name.ID+"-rival", []runtime.Port{{IP: "10.77.0.101", Port: 21301, ContainerPort: 25565, Protocol: "tcp"}}
	rival.Live.Memory = all // the half is reserved
	c.start(t, rival)
	c.start(t, s)

	err = c.Update(t.Context(), s.Name, runtime.Live{Memory: all * 3 / 2})
	require.ErrorIs(t, err, runtime.ErrNoRoom)
	require.Equal(t, int64(64<<20), serverOf(c.pod(t, s.Name)).Resources.Limits.Memory().Value(), "the node reserves no more")
	now, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.Equal(t, int64(64<<20), now.Live.Memory)
	require.NoError(t, c.Update(t.Context(), s.Name, runtime.Live{Memory: 128 << 20}))
	require.Equal(t, int64(128<<20), serverOf(c.pod(t, s.Name)).Resources.Limits.Memory().Value())
	require.ErrorIs(t, c.Update(t.Context(), s.Name, runtime.Live{Memory: 1 << 50}), runtime.ErrInvalid, "no node is as large")
	require.NoError(t, c.Kill(t.Context(), rival.Name))
	require.NoError(t, c.Remove(t.Context(), rival.Name))
}

// testDrainedAfterItsExit evicts the pod of a container that has exited, as the drain of its node does.
func testDrainedAfterItsExit(t *testing.T, c cluster, s runtime.Spec) {
	c.start(t, shell(s, "echo bye; exit 4"))
	before := c.awaitExit(t, s.Name)
	name := c.podName(s.Name)
	uid := c.pod(t, s.Name).UID
	eviction := fmt.Appendf(nil, `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, name)
	require.NoError(t, c.admin.api().Post().AbsPath("/api/v1/namespaces/"+c.cfg.Namespace+"/pods/"+name+"/eviction").Body(eviction).Do(t.Context()).Error())
	require.Equal(t, "bye\n", c.output(t, s.Name), "its output can still be read")
	enginetest.Until(t, 2*outputTime, "a pod on no node", func() bool {
		_, err := c.Inspect(t.Context(), s.Name)
		require.NoError(t, err)
		return c.pod(t, s.Name).UID != uid
	})
	require.True(t, gated(c.pod(t, s.Name)))
	after, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.Equal(t, 4, after.ExitCode)
	require.True(t, before.StartedAt.Equal(after.StartedAt))
	require.Equal(t, before.ContainerID, after.ContainerID)
	c.begin(t, s.Name)
}

// testQuota uses up a quota of pods. It blocks starts only as long as it is used up.
func testQuota(t *testing.T, _ cluster, s runtime.Spec) {
	c := newCluster(t)
	require.NoError(t, c.Pull(t.Context(), s.Image, runtime.Auth{}, nil))
	c.start(t, s)
	require.NoError(t, c.Kill(t.Context(), s.Name))
	uid := c.pod(t, s.Name).UID
	quotas := "/api/v1/namespaces/" + c.cfg.Namespace + "/resourcequotas"
	body := []byte(`{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}`)
	require.NoError(t, c.admin.api().Post().AbsPath(quotas).Body(body).SetHeader("Content-Type", "application/json").Do(t.Context()).Error())
	pod := []byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}`)
	enginetest.Until(t, 3*time.Minute, "a quota that holds", func() bool { // a start must not be the one that finds out, between two requests
		request := c.admin.api().Post().AbsPath("/api/v1/namespaces/"+c.cfg.Namespace+"/pods").Param("dryRun", "All")
		return apierrors.IsForbidden(request.Body(pod).SetHeader("Content-Type", "application/json").Do(t.Context()).Error())
	})
	require.ErrorIs(t, c.Start(t.Context(), s.Name), runtime.ErrNoRoom)
	require.Equal(t, uid, c.pod(t, s.Name).UID, "the record is kept")
	require.NoError(t, c.admin.deletePod(t.Context(), c.pod(t, s.Name), 30), "as a drain does")
	c.exits.Store(c.podName(s.Name), exit{uid, time.Now().Add(-outputTime)})
	state, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err, "no successor is accepted")
	require.Equal(t, killed, state.ExitCode)
	require.Equal(t, uid, c.pod(t, s.Name).UID)
	require.NoError(t, c.admin.api().Delete().AbsPath(quotas+"/q").Do(t.Context()).Error())
	enginetest.Until(t, 3*time.Minute, "a start without the quota", func() bool { return c.Start(t.Context(), s.Name) == nil })
	require.NoError(t, c.Kill(t.Context(), s.Name))
	require.NoError(t, c.Remove(t.Context(), s.Name))
}

// testDebugged starts a container again whose pod somebody has debugged, and to which a finalizer of others was
// added.
func testDebugged(t *testing.T, c cluster, s runtime.Spec) {
	c.start(t, s)
	name := "/api/v1/namespaces/" + c.cfg.Namespace + "/pods/" + c.podName(s.Name)
	add := []byte(`{"spec": {"ephemeralContainers": [{"name": "debug", "image": "localhost/pause:1", "terminationMessagePolicy": "File"}]}}`)
	require.NoError(t, c.admin.api().Patch(types.StrategicMergePatchType).AbsPath(name+"/ephemeralcontainers").Body(add).Do(t.Context()).Error())
	require.NoError(t, c.Kill(t.Context(), s.Name))
	c.begin(t, s.Name)
	require.Empty(t, c.pod(t, s.Name).Spec.EphemeralContainers)

	finalizers := func(list string) {
		body := []byte(`{"metadata": {"finalizers": ` + list + `}}`)
		require.NoError(t, c.admin.api().Patch(types.MergePatchType).AbsPath(name).Body(body).Do(t.Context()).Error())
	}
	finalizers(`["example.com/other", "` + finalizer + `"]`)
	require.NoError(t, c.Kill(t.Context(), s.Name))
	free := time.AfterFunc(2*time.Second, func() { finalizers(`[]`) }) // its owner removes it
	defer free.Stop()
	c.begin(t, s.Name)
}

// testOutOfMemory: a run that goes on after the kernel has killed a process of it ends for another reason. One that ends at
// once is a part of conform. Where the kernel kills all processes of a container together, the run ends with the first.
func testOutOfMemory(t *testing.T, c cluster, s runtime.Spec) {
	s.Live.Memory = 16 << 20
	c.start(t, shell(s, "(x=x; while true; do x=$x$x$x$x$x; done); sleep 20; exit 3"))
	end := c.awaitExit(t, s.Name)
	require.Equal(t, end.ExitCode == killed, end.OOMKilled)
}
