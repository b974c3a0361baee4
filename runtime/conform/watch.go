package conform

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func list(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	id := h.createAndStart(t, s)
	rest := h.spec(Sleeps)
	rest.Name.Role = runtime.Install
	rest.Mounts = []runtime.Mount{{Source: h.Dir(t), Target: "/here"}}
	h.create(t, rest)
	found, err := h.Engine.List(t.Context())
	require.NoError(t, err)
	seen := map[runtime.Name]runtime.Found{}
	for _, f := range found {
		seen[f.Name] = f
	}
	require.Equal(t, id, seen[s.Name].ContainerID)
	require.True(t, seen[s.Name].Running)
	require.Equal(t, s.SpecHash, seen[s.Name].SpecHash)
	require.Contains(t, seen, rest.Name)
	require.False(t, seen[rest.Name].Running)
	require.Empty(t, seen[s.Name].Mounts)
	require.Equal(t, []string{rest.Mounts[0].Source}, seen[rest.Name].Mounts, "also of one that never ran")
}

// watch runs a Watch and waits for a notification of every kind of change.
func watch(t *testing.T, h *Harness) {
	before := h.spec(Sleeps)
	h.create(t, before)
	listed, news := make(chan []runtime.Found, 1), make(chan runtime.Name, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- h.Engine.Watch(ctx, func(f []runtime.Found) { listed <- f }, func(n runtime.Name) { news <- n })
	}()
	var names []runtime.Name
	for _, f := range <-listed {
		names = append(names, f.Name)
	}
	require.Contains(t, names, before.Name)

	s := h.spec(Sleeps)
	requireNotified := func(what string) {
		t.Helper()
		for late := time.After(10 * time.Second); ; {
			select {
			case n := <-news:
				if n == s.Name {
					return
				}
			case <-late:
				require.Fail(t, "no notification of "+what)
			}
		}
	}
	h.create(t, s)
	requireNotified("its creation")
	h.start(t, s.Name)
	requireNotified("its start")
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	requireNotified("its exit")
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
	requireNotified("its removal")
	cancel()
	require.True(t, errors.Is(<-ended, context.Canceled))
}
