package enginetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/enginetest"
)

func TestContainerLifecycle(t *testing.T) {
	c := enginetest.Shared(t)
	image := enginetest.Busybox(t)
	id := c.CreateRaw(t, "berth-enginetest-1", map[string]any{
		"Image": image, "Cmd": []string{"sleep", "1000"}, "Labels": map[string]string{"io.berth.store": "enginetest-1"},
		"HostConfig": map[string]any{"NetworkMode": "none"},
	})
	require.Equal(t, 204, c.Act(t, id, "start"))
	one, found := c.Inspect(t, "berth-enginetest-1")
	require.True(t, found)
	require.True(t, one.State.Running)
	require.NotEmpty(t, one.Raw["HostConfig"])
	c.Kill(t, id)
	one, _ = c.Inspect(t, id)
	require.Equal(t, 137, one.State.ExitCode)
	require.Len(t, c.ByLabel(t, "io.berth.store=enginetest-1"), 1)
	c.CleanStore(t, "enginetest-1")
	_, found = c.Inspect(t, id)
	require.False(t, found)
}

func TestPush(t *testing.T) {
	c := enginetest.Shared(t)
	image := enginetest.Busybox(t)
	for _, r := range []*enginetest.Registry{enginetest.StartRegistry(t), enginetest.StartLockedRegistry(t, "me", "secret")} {
		ref := r.Push(t, c, image, "enginetest:1")
		require.Equal(t, r.Addr+"/enginetest:1", ref)
		status, _ := c.Do(t, "GET", "/images/"+ref+"/json", nil)
		require.Equal(t, 404, status)
	}
}
