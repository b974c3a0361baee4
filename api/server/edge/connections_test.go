package edge

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
)

// addressed is a connection from an address. It has no data.
type addressed struct {
	net.Conn
	address string
	closed  bool
}

func fromAddress(ip string) *addressed { return &addressed{address: ip} }

func (a *addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.address), Port: 1} }
func (a *addressed) Close() error         { a.closed = true; return nil }

func noProxy(string) bool { return false }

// open1 registers a connection from an address.
func open1(s *connections, ip string) (*conn, *addressed) {
	below := fromAddress(ip)
	c := &conn{Conn: below, all: s}
	s.add(c)
	return c, below
}

// withTotal returns connections with limits of their own.
func withTotal(total *int, perIP int, shared func(string) bool) *connections {
	s := newConnections(shared)
	s.anonymous = limit.NewSlots(func() limit.Bounds { return limit.Bounds{All: *total / 4, Tenant: perIP, Anonymous: true} })
	s.known = limit.NewSlots(func() limit.Bounds { return limit.Bounds{All: *total * 3 / 4, Tenant: 512} })
	return s
}

// TestConnectionLimits: of the addresses without a token, and of the tenants, the one with most
// connections loses the oldest. The configured token loses none.
func TestConnectionLimits(t *testing.T) {
	total := 40 // 10 without a token, 27 of tenants
	s := withTotal(&total, 100, noProxy)
	var panels []*addressed
	for range 10 {
		c, below := open1(s, "10.0.0.1")
		s.prove(c, "")
		panels = append(panels, below)
	}
	_, good := open1(s, "10.0.0.1")
	first, evil := open1(s, "10.0.0.2")
	for range 500 {
		open1(s, "10.0.0.2")
	}
	require.True(t, evil.closed)
	require.False(t, good.closed, "it has only one")
	require.NoError(t, first.Close())
	s.prove(first, "late")
	require.Zero(t, s.known.UsedBy("late"), "a closed connection stays closed")

	one, tenant := open1(s, "10.0.0.3")
	s.prove(one, "tenant")
	for range 100 {
		c, _ := open1(s, "10.0.0.4")
		s.prove(c, "greedy")
	}
	require.False(t, tenant.closed)
	require.Equal(t, 30, s.known.Used())
	require.LessOrEqual(t, s.anonymous.Used(), 10)
	for i := range 500 {
		open1(s, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
		open1(s, fmt.Sprintf("2001:db8::%x", i))
	}
	require.Equal(t, 10, s.anonymous.Used())
	for _, c := range panels {
		require.False(t, c.closed)
	}

	total = 8 // fewer handles, while it runs
	c, _ := open1(s, "10.0.0.1")
	s.prove(c, "")
	open1(s, "10.0.0.2")
	require.Equal(t, []int{6, 6, 2}, []int{s.known.Used(), s.known.UsedBy(""), s.anonymous.Used()})
	for c := range s.open {
		s.remove(c)
	}
	require.Equal(t, []int{0, 0}, []int{s.known.Used(), s.anonymous.Used()})
}

// TestConnectionsPerNetwork: connections with a token and those of a trusted proxy
// do not count. An IPv6 network counts as one address.
func TestConnectionsPerNetwork(t *testing.T) {
	total := 400
	s := withTotal(&total, 3, func(ip string) bool { return ip == "10.0.0.9" })
	for i := range 10 {
		c, _ := open1(s, "10.0.0.1")
		s.prove(c, "token")
		open1(s, "10.0.0.1")
		open1(s, "10.0.0.9")
		open1(s, fmt.Sprintf("2001:db8::%x:1", i))
	}
	require.Equal(t, 10, s.known.UsedBy("token"))
	require.Equal(t, 3, s.anonymous.UsedBy("10.0.0.1"))
	require.Equal(t, 10, s.anonymous.UsedBy("10.0.0.9"))
	require.Equal(t, 3, s.anonymous.UsedBy("2001:db8::/64"))
}
