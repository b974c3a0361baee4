package docker

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	dockernetwork "github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// TestListedState is what a list shows of a container. A run that may be younger than the list before has a start.
func TestListedState(t *testing.T) {
	e := &Engine{cfg: Config{Network: "berth"}}
	for _, tc := range []struct {
		state, status string
		want          runtime.State
		young         bool
	}{
		{"created", "Created", runtime.State{}, false},
		{"exited", "Exited (1) 3 seconds ago", runtime.State{}, false},
		{"running", "Up Less than a second", runtime.State{Running: true}, true},
		{"running", "Up 59 seconds", runtime.State{Running: true}, true},
		{"running", "Up About a minute", runtime.State{Running: true}, false},
		{"running", "Up 3 days", runtime.State{Running: true}, false},
		{"paused", "Up 2 minutes (Paused)", runtime.State{Running: true, Paused: true}, false},
	} {
		s := e.listed(container.Summary{ID: "1", Labels: map[string]string{labelSpec: "h"}, State: tc.state, Status: tc.status})
		require.Equal(t, tc.young, time.Since(s.StartedAt) < time.Hour, tc.status)
		s.StartedAt, tc.want.ContainerID, tc.want.SpecHash = time.Time{}, "1", "h"
		require.Equal(t, tc.want, s, tc.status)
	}
	c := container.Summary{NetworkSettings: &container.NetworkSettingsSummary{Networks: map[string]*dockernetwork.EndpointSettings{}}}
	c.HostConfig.NetworkMode = "berth"
	require.True(t, e.listed(c).Detached)
	c.NetworkSettings.Networks["berth"] = &dockernetwork.EndpointSettings{}
	require.False(t, e.listed(c).Detached)
}
