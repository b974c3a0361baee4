package docker

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// TestInstanceAtUsualSocket: without DOCKER_HOST and a configured host, Instance dials
// the engine's usual socket, as everything else does.
func TestInstanceAtUsualSocket(t *testing.T) {
	t.Setenv("DOCKER_HOST", "")
	e, err := New(Config{StoreID: "store"}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer e.Close()
	if _, err := e.Instance(t.Context()); err != nil { // the tests' engine may be elsewhere
		require.ErrorContains(t, err, "unix:///var/run/docker.sock")
	}
}
