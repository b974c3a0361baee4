package intent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
)

// wide returns a world with every port of 10.0.0.9 in the pool.
func wide(w *world) {
	w.t.Helper()
	var f v1.FieldErrors
	all := intent.CheckPorts(&f, "10.0.0.9", "1-65535", "tcp")
	require.NoError(w.t, f.Err())
	require.NoError(w.t, intent.AddPorts(w.store, all))
}

// bound returns a spec with n ports of 10.0.0.9, from first on.
func (w *world) bound(first, n int) v1.ContainerSpec {
	spec := w.spec()
	for port := first; port < first+n; port++ {
		spec.Ports = append(spec.Ports, v1.Port{IP: "10.0.0.9", Port: port, Protocol: "tcp"})
	}
	return spec
}

// claim has containers claim the first n ports of 10.0.0.9.
func (w *world) claim(n int) {
	w.t.Helper()
	const each = 1000
	for first := 1; first <= n; first += each {
		id := fmt.Sprintf("%s-%05d", strings.Repeat("x", 57), first)
		spec := w.bound(first, min(each, n+1-first))
		require.NoError(w.t, intent.CreateContainer(w.store, intent.Policy{}, id, spec), "%d ports are claimed", first-1)
	}
}

func TestEveryPortOfAnAddressCanBeClaimed(t *testing.T) {
	w := newWorld(t)
	wide(w)
	w.claim(65535)
	_, err := intent.RandomPort(w.store.Read(), "10.0.0.9", "tcp")
	require.Equal(t, v1.ErrNoPorts, err)
	require.Empty(t, w.audit())
}

func TestFlagEndsWithClaim(t *testing.T) {
	w := newWorld(t)
	ref := v1.PortRef{IP: "10.0.0.1", Port: 1001, Protocol: "tcp"}
	look := func() (inUse bool, by string) { e := w.port(1001, "tcp"); return e.InUse, string(e.Container) }
	require.NoError(t, intent.MarkPort(w.store, ref))
	w.create("mc", 1001)
	inUse, by := look()
	require.True(t, inUse)
	require.Equal(t, "mc", by)

	require.NoError(t, intent.UnmarkPort(w.store, ref))
	inUse, by = look()
	require.False(t, inUse)
	require.Equal(t, "mc", by, "a flag is no claim")
	require.NoError(t, intent.MarkPort(w.store, ref))
	require.NoError(t, intent.DeleteContainer(w.store, "mc"))
	inUse, by = look()
	require.False(t, inUse, "also one that was set by hand before")
	require.Empty(t, by)
}

// BenchmarkCreate creates and deletes a container beside others.
func BenchmarkCreate(b *testing.B) {
	for _, claims := range []int{0, 1000, 10000, 20000} {
		b.Run(fmt.Sprintf("claims-%d", claims), func(b *testing.B) {
			w := newWorld(b)
			wide(w)
			w.claim(claims)
			b.ResetTimer()
			for i := range b.N {
				id := fmt.Sprintf("new-%d", i)
				require.NoError(b, intent.CreateContainer(w.store, intent.Policy{}, id, w.bound(30000+i%30000, 1)))
				require.NoError(b, intent.DeleteContainer(w.store, id))
			}
		})
	}
}

// BenchmarkRandomPort picks a port beside 20,000 claims.
func BenchmarkRandomPort(b *testing.B) {
	w := newWorld(b)
	wide(w)
	w.claim(20000)
	b.ResetTimer()
	for range b.N {
		_, err := intent.RandomPort(w.store.Read(), "10.0.0.9", "tcp")
		require.NoError(b, err)
	}
}
