package edge

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/stretchr/testify/require"
)

// TestBodyWaitsForMemory: a large body gets 503 if it waits in vain; a small one
// does not wait.
func TestBodyWaitsForMemory(t *testing.T) {
	bodies := NewBodies("")
	h := newHarness(t, Options{}, func(s *Server) {
		s.Add("POST", "/body", func(c *fiber.Ctx) error {
			_, err := bodies.Read(c, 1<<20)
			return err
		})
	})
	b := &bodies.budget
	require.NoError(t, b.reserve(t.Context(), "", bodiesTotal, bodiesTotal))
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
	require.Eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.freed != nil }, 10*time.Second, time.Millisecond)
	b.release("", bodiesTotal)
	require.Equal(t, 200, (<-got).StatusCode)
}
