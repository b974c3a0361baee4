package edge

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
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

// TestConnectionLimits: of the addresses without a token, and of the minted tokens,
// the one with most connections loses the oldest. The configured token loses none.
func TestConnectionLimits(t *testing.T) {
	s := newConnections(100, noProxy)
	s.total = func() int { return 40 } // 10 without a token, 20 of minted tokens
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
	s.prove(first, "late")
	require.Nil(t, first.place, "a closed connection stays closed")

	one, tenant := open1(s, "10.0.0.3")
	s.prove(one, "tenant")
	for range 100 {
		c, _ := open1(s, "10.0.0.4")
		s.prove(c, "greedy")
	}
	require.False(t, tenant.closed)
	require.Equal(t, [classes]int{9, 20, 10}, s.count, "tokens take no connections of others: the tenth has a token now")
	for i := range 500 {
		open1(s, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
		open1(s, fmt.Sprintf("2001:db8::%x", i))
	}
	for _, c := range panels {
		require.False(t, c.closed)
	}

	s.total = func() int { return 8 } // fewer handles, while it runs
	s.trim()
	require.Equal(t, [classes]int{0, 0, 8}, s.count)
	for of := range s.open {
		for s.open[of] != nil {
			s.remove(s.open[of].Front().Value.(*conn))
		}
	}
	require.Empty(t, s.open)
	require.Equal(t, [classes]int{}, s.count)
}

// TestConnectionsPerNetwork: connections with a token and those of a trusted proxy
// do not count. An IPv6 network counts as one address.
func TestConnectionsPerNetwork(t *testing.T) {
	s := newConnections(3, func(ip string) bool { return ip == "10.0.0.9" })
	s.total = func() int { return 400 }
	for i := range 10 {
		c, _ := open1(s, "10.0.0.1")
		s.prove(c, "token")
		open1(s, "10.0.0.1")
		open1(s, "10.0.0.9")
		open1(s, fmt.Sprintf("2001:db8::%x:1", i))
	}
	require.Equal(t, 10, s.open[owner{minted, "token"}].Len())
	require.Equal(t, 3, s.open[owner{anonymous, "10.0.0.1"}].Len())
	require.Equal(t, 10, s.open[owner{anonymous, "10.0.0.9"}].Len())
	require.Equal(t, 3, s.open[owner{anonymous, "2001:db8::/64"}].Len())
}
