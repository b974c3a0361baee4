package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/runtime"
	"berth/runtime/docker"
	"berth/runtime/kubernetes"
	"berth/store"
)

// TestRequestsForWhatEnginesLack: package intent has the names of the capabilities, not the constants.
func TestRequestsForWhatEnginesLack(t *testing.T) {
	no := false
	requests := map[runtime.Capability]func(*v1.ContainerSpec){
		runtime.CanSwap:       func(s *v1.ContainerSpec) { s.Limits.Swap = v1.UnlimitedSwap },
		runtime.CanPids:       func(s *v1.ContainerSpec) { s.Limits.Pids = 100 },
		runtime.CanCpuset:     func(s *v1.ContainerSpec) { s.Cpuset = "0" },
		runtime.CanIOWeight:   func(s *v1.ContainerSpec) { s.Limits.IOWeight = 100 },
		runtime.CanNoOOMKill:  func(s *v1.ContainerSpec) { s.Limits.OOMKill = &no },
		runtime.CanMountHost:  func(s *v1.ContainerSpec) { s.Mounts = []v1.Mount{{Source: "/srv", Target: "/x"}} },
		runtime.CanNameUsers:  func(s *v1.ContainerSpec) { s.User = "player" },
		runtime.CanHoldImages: func(s *v1.ContainerSpec) { s.PullPolicy = v1.PullNever },
		runtime.CanPlace:      func(s *v1.ContainerSpec) { s.Placement.RuntimeClass = "gvisor" },
		runtime.CanAnyEnv:     func(s *v1.ContainerSpec) { s.Env = map[string]string{"Ü": "1"} },
		// These are no requests.
		runtime.CanPause: nil, runtime.CanCountPids: nil, runtime.CanDetectPorts: nil,
	}
	for _, lacking := range append((&kubernetes.Engine{}).Lacks(), (&docker.Engine{}).Lacks()...) {
		request, known := requests[lacking]
		require.True(t, known, lacking)
		if request == nil {
			continue
		}
		spec := v1.ContainerSpec{Image: "busybox:1", VolumeID: "v", Limits: v1.Limits{Memory: 64 << 20}}
		request(&spec)
		var f v1.FieldErrors
		policy := intent.Policy{Engine: v1.EngineKubernetes, Lacks: []string{string(lacking)}}
		intent.CheckContainer(&f, policy, "mc", &spec)
		require.Len(t, f, 1, lacking)
		require.Contains(t, f[0].Message, "lacks "+string(lacking))
	}
}

// TestEngineStaysWithItsContainers: another engine could not find them.
func TestEngineStaysWithItsContainers(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, keepEngine(s, v1.EngineDocker))
	require.NoError(t, keepEngine(s, v1.EngineKubernetes), "nothing is stored")
	require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", v1.ContainerSpec{}) }))
	require.NoError(t, keepEngine(s, v1.EngineKubernetes))
	require.ErrorContains(t, keepEngine(s, v1.EngineDocker), "1 containers of the engine kubernetes: set engine to kubernetes")
}
