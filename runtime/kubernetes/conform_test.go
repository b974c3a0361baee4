//go:build cluster

package kubernetes

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/hack/test/enginetest"
	"berth/runtime"
	"berth/runtime/conform"
)

func TestConform(t *testing.T) {
	c := newCluster(t)
	open := enginetest.StartRegistryAt(t, c.host+":5000", "", "")
	locked := enginetest.StartRegistryAt(t, c.host+":5001", "me", "secret")
	image := push(t, open, "busybox:1")
	require.NoError(t, c.Pull(t.Context(), image, runtime.Auth{}, nil))
	var ports atomic.Int64
	conform.Run(t, &conform.Harness{
		Engine: c.Engine, Lacks: c.Lacks(), Image: image,
		Pullable: push(t, open, "pullable:1"),
		Missing:  open.Addr + "/none:1",
		Locked:   push(t, locked, "locked:1"),
		Auth:     runtime.Auth{Host: locked.Addr, Username: "me", Password: "secret"},
		Dir: func(t *testing.T) string {
			dir, err := os.MkdirTemp(c.cfg.Volumes, "dir")
			require.NoError(t, err)
			return dir
		},
		DropDir: func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) },
		Port:    func(*testing.T) int { return 20000 + int(ports.Add(1)) },
		Occupy: func(t *testing.T, port int) func() {
			l, err := net.Listen("tcp", c.host+":"+strconv.Itoa(port))
			require.NoError(t, err)
			return func() { _ = l.Close() }
		},
		Vanish: func(t *testing.T, n runtime.Name) { require.NoError(t, c.drop(t.Context(), c.pod(t, n))) },
		Outside: func(t *testing.T, n runtime.Name) {
			pod := c.pod(t, n)
			require.NoError(t, c.patch(t.Context(), pod, "", operation{Op: "remove", Path: "/spec/schedulingGates"}))
			require.NoError(t, c.await(t.Context(), pod, func(now *core1.Pod) (bool, error) { return running(now), nil }))
		},
		Foreign: func(t *testing.T, n runtime.Name) func() { return c.foreign(t, n) },
	})
}

// foreign creates a pod with the name of n's that carries the label of another store.
func (c cluster) foreign(t *testing.T, n runtime.Name) (untouched func()) {
	t.Helper()
	r := record{ID: n.ID, Role: string(n.Role), ContainerID: c.newContainerID(n), SpecHash: "1"}
	text, err := r.text()
	require.NoError(t, err)
	pod := &core1.Pod{
		ObjectMeta: meta.ObjectMeta{
			Name: c.podName(n), Labels: map[string]string{labelStore: hash("another")}, Annotations: map[string]string{annotationRecord: text},
		},
		Spec: core1.PodSpec{
			SchedulingGates: []core1.PodSchedulingGate{{Name: gate}},
			Containers:      []core1.Container{{Name: serverContainer, Image: "localhost/pause:1"}},
		},
	}
	require.NoError(t, c.post(t.Context(), pod))
	get := func() *core1.Pod {
		now := &core1.Pod{}
		request := c.api().Get().Namespace(c.cfg.Namespace).Resource("pods").Name(pod.Name)
		require.NoError(t, request.Do(t.Context()).Into(now))
		return now
	}
	before := get()
	return func() { require.Equal(t, before, get()) }
}
