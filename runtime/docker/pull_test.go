package docker

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// TestPullCredentialsMatchRegistry looks at every request that an engine gets.
func TestPullCredentialsMatchRegistry(t *testing.T) {
	var sent []string
	e := stub(t, func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.Header.Get("X-Registry-Auth")) })
	auth := runtime.Auth{Host: "r.example", Username: "me", Password: "secret"}
	for _, ref := range []string{"evil.example/a:1", "busybox", "r.example:5000/a", "r.example.evil.example/a", "r.exampl/a", "r.example"} {
		require.ErrorIs(t, e.Pull(t.Context(), ref, auth, nil), runtime.ErrInvalid, ref)
	}
	require.Empty(t, sent)
	require.NoError(t, e.Pull(t.Context(), "r.example/a:1", auth, nil))
	auth.Host = "docker.io"
	require.NoError(t, e.Pull(t.Context(), "busybox", auth, nil))
	require.Len(t, sent, 2)
	require.NotContains(t, sent, "")
}
