package edge

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// TestBodyWaitsForMemory: a large body gets 503 if it waits in vain; a small one
// does not wait.
func TestBodyWaitsForMemory(t *testing.T) {
	bodies := NewBodies(v1.Defaults)
	h := newHarness(t, nil, func(s *Server) {
		s.Add("POST", "/body", func(c *fiber.Ctx) error {
			_, err := bodies.Read(c, 1<<20)
			return err
		})
	})
	leave, err := bodies.memory.Enter(t.Context(), limit.Claim{N: 32})
	require.NoError(t, err)
	large := `{"ttl":"1h"` + strings.Repeat(" ", 20<<10) + "}"
	bodies.patience = time.Millisecond
	resp := h.post("/body", large)
	bodies.patience = time.Minute
	require.Equal(t, 503, resp.StatusCode)
	require.Equal(t, "busy", resp.Header.Get("X-Error-Code"))
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
	require.Equal(t, 200, h.post("/body", "{}").StatusCode)
	got := make(chan *http.Response, 1)
	go func() { got <- h.post("/body", large) }()
	require.Eventually(t, func() bool { return bodies.memory.Waiting() == 1 }, 10*time.Second, time.Millisecond)
	leave()
	require.Equal(t, 200, (<-got).StatusCode)
	require.Zero(t, bodies.memory.Used())
}
