package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// failing is a listener whose Accept fails some times, then has connections.
type failing struct {
	net.Listener
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errs) == 0 {
		return fromAddress("127.0.0.1"), nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
}

func (f *failing) Close() error { return nil }

// addressed is a connection from some address that does nothing.
type addressed struct {
	net.Conn
	address string
	closed  bool
}

func fromAddress(ip string) *addressed { return &addressed{address: ip} }

func (a *addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.address), Port: 1} }
func (a *addressed) Close() error         { a.closed = true; return nil }

func noProxy(string) bool { return false }

// TestNoErrorEndsAccept, whatever it is; and a thousand make few lines.
func TestNoErrorEndsAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, os.NewSyscallError("accept4", syscall.EINVAL), errors.New("new")}
		ln := &failing{}
		for range 20 {
			ln.errs = append(ln.errs, kinds...)
		}
		log := &lines{}
		l := newListener(ln, newConnections(0, noProxy), slog.New(slog.NewTextHandler(log, nil)))
		c, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Contains(t, log.String(), "too many open files")
		require.Equal(t, 6, strings.Count(log.String(), "\n"), "120 tries in a minute")

		ln.errs = []error{net.ErrClosed}
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)

		ln.errs = kinds
		go func() { _ = l.Close() }()
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed, "it does not wait for its next try")
	})
}

// open takes a connection in.
func open1(s *connections, ip string) (*conn, *addressed) {
	below := fromAddress(ip)
	c := &conn{Conn: below, all: s}
	s.add(c)
	return c, below
}

// TestNobodyTakesAllConnections: of the strangers, and of the minted tokens, the
// one with most connections loses the oldest; the panel loses none.
func TestNobodyTakesAllConnections(t *testing.T) {
	s := newConnections(100, noProxy)
	s.total = func() int { return 40 } // 10 of strangers, 20 of minted tokens
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
	require.Nil(t, first.place, "what was closed stays so")

	one, tenant := open1(s, "10.0.0.3")
	s.prove(one, "tenant")
	for range 100 {
		c, _ := open1(s, "10.0.0.4")
		s.prove(c, "greedy")
	}
	require.False(t, tenant.closed)
	require.Equal(t, [classes]int{9, 20, 10}, s.count, "strangers have lost none of theirs to tokens: the tenth has proved itself")
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

// TestConnectionsOfOneAddress: one with a token does not count, nor does a
// trusted proxy's; an IPv6 network is one address.
func TestConnectionsOfOneAddress(t *testing.T) {
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
