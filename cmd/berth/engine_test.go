package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

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
