package docker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGateway: it is the default route of a container.
func TestGateway(t *testing.T) {
	r := newRig(t)
	gateway, err := r.Gateway(t.Context())
	require.NoError(t, err)
	s := r.spec("gateway", "ip route | grep -q 'default via "+gateway+" ' && exit 7")
	r.run(t, s)
	require.Eventually(t, func() bool {
		state, err := r.Inspect(t.Context(), s.Name)
		require.NoError(t, err)
		return state.ExitCode == 7
	}, time.Minute, 20*time.Millisecond)
}
