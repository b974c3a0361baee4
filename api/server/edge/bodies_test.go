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
	require.Eventually(t, func() bool { return bodies.memory.Waiting() == 1 }, time.Minute, time.Millisecond)
	leave()
	require.Equal(t, 200, (<-got).StatusCode)
	require.Zero(t, bodies.memory.Used())
}

// TestSlowLargeBodies: large bodies leave memory to others, and a slow one does not keep its own for long.
func TestSlowLargeBodies(t *testing.T) {
	bodies := NewBodies(v1.Defaults)
	h := newHarness(t, nil, func(s *Server) {
		s.Add("POST", "/body", func(c *fiber.Ctx) error {
			SetToken(c, "t", c.Get("Tenant"))
			_, err := bodies.Read(c, 8<<20)
			return err
		})
	})
	bodies.patience = time.Millisecond
	send := func(tenant string, bytes int) int {
		r, err := http.NewRequest("POST", "http://"+h.addr+"/body", strings.NewReader(`{"a":"`+strings.Repeat(" ", bytes)+`"}`))
		require.NoError(t, err)
		r.Header.Set("Tenant", tenant)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	for _, tenant := range []string{"a", "b"} {
		_, err := bodies.memory.Enter(t.Context(), limit.Claim{Tenant: tenant, Object: limit.LargeBody, N: 8})
		require.NoError(t, err)
	}
	require.Equal(t, 503, send("c", 7<<20), "two tenants have all that large bodies may have")
	require.Equal(t, 200, send("c", 20<<10))
	require.Equal(t, 200, send("", 7<<20), "the administrator")
	require.Less(t, limit.BodyTime(8<<20), 22*time.Second)
}
