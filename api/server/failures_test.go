package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// TestWrongTokensWait once there were many, and nobody else does.
func TestWrongTokensWait(t *testing.T) {
	h := newHarnessWith(t, func(d *Deps) { d.FailureDelay = time.Hour })
	wrong := "GET /containers HTTP/1.1\nHost: x\nAuthorization: Bearer berth_00000000000000000000000000000000\n\n"
	for range failuresFree {
		c := h.dial()
		c.send(wrong)
		status, _ := c.answer()
		require.Equal(t, 401, status)
	}
	waiting := func(n int) {
		require.Eventually(t, func() bool { return len(h.server.failures.waiting) == n }, 20*time.Second, time.Millisecond)
	}
	var slow []*raw
	for range failuresWaiting {
		c := h.dial()
		c.send(wrong)
		slow = append(slow, c)
	}
	waiting(failuresWaiting)
	over := h.dial()
	over.send(wrong)
	status, _ := over.answer()
	require.Equal(t, 401, status, "not all that come wait")
	_, err := over.r.ReadByte()
	require.Error(t, err, "but each costs a connection")

	require.Equal(t, 200, h.do(request{method: "GET", path: "/containers"}).status)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/containers", token: "-"}).status, "a missing token is no guess")
	for _, c := range slow[1:] {
		require.NoError(t, c.Close())
	}
	waiting(1) // the harness shuts the server down while it does
}

// TestFailuresAreCountedByAddress in bounded memory.
func TestFailuresAreCountedByAddress(t *testing.T) {
	f := newFailures(Deps{}, prometheus.NewCounter(prometheus.CounterOpts{}))
	now := time.Unix(1000, 0)
	many := func(name string, wrong bool) (slow bool) {
		for range failuresFree + 1 {
			_, slow = f.add(name, wrong, now)
		}
		return slow
	}
	require.False(t, many("a", false), "no token at all")
	require.True(t, many("a", true))
	_, slow := f.add("b", true, now)
	require.False(t, slow)
	now = now.Add(failureWindow)
	_, slow = f.add("a", true, now)
	require.False(t, slow, "a new minute")
	for i := range 10 * maxAddresses {
		f.add(fmt.Sprint(i), true, now)
	}
	require.LessOrEqual(t, len(f.all), maxAddresses+1)
	_, slow = f.add("new", true, now)
	require.True(t, slow, "counted with all others")
	now = now.Add(failureWindow)
	_, slow = f.add("new", true, now)
	require.False(t, slow)
	require.Len(t, f.all, 1)
	require.Equal(t, network("2001:db8::1"), network("2001:db8::ffff"))
}
