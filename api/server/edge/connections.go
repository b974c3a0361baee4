package edge

import (
	"net"
	"sync"

	"berth/api/limit"
)

// connections are the open connections. Where there are too many, the oldest one of the
// address or tenant that has most is closed, and the new one is served. So a client that
// opens many connections cannot shut out others, not even others from its own address.
type connections struct {
	anonymous *limit.Slots         // on which no request had a valid token yet, by address
	known     *limit.Slots         // by the tenant of the last valid token
	shared    func(ip string) bool // reports whether many clients share an address: a trusted proxy

	mu   sync.Mutex
	open map[*conn]struct{}
}

func newConnections(perIP int, shared func(ip string) bool) *connections {
	if perIP <= 0 {
		perIP = limit.AnonymousOfAddress
	}
	return &connections{anonymous: limit.NewSlots(func() limit.Bounds { return limit.Anonymous(perIP) }),
		known: limit.NewSlots(limit.Connections), shared: shared, open: map[*conn]struct{}{}}
}

// add counts a connection for its address.
func (s *connections) add(c *conn) {
	ip := host(c.RemoteAddr())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
	s.place(c, s.anonymous, limit.Claim{Tenant: limit.Network(ip), Shared: s.shared(ip)})
}

// prove counts a connection for the tenant whose token a request on it presented.
func (s *connections) prove(c *conn, tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[c]; open && (!c.proved || c.tenant != tenant) {
		c.proved, c.tenant = true, tenant
		s.place(c, s.known, limit.Claim{Tenant: tenant})
	}
}

// place moves a connection to a slot. The caller holds mu.
func (s *connections) place(c *conn, slots *limit.Slots, claim limit.Claim) {
	if c.leave != nil {
		c.leave()
	}
	below := plain(c.Conn)
	c.leave = slots.Push(claim, func() { _ = below.Close() })
}

// remove removes a closed connection.
func (s *connections) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[c]; open {
		delete(s.open, c)
		c.leave()
	}
}

// trim closes connections above the limits, which may have changed.
func (s *connections) trim() {
	s.anonymous.Trim()
	s.known.Trim()
}

// unused returns the connections on which no byte was received yet.
func (s *connections) unused() (unused []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		if !c.used.Load() {
			unused = append(unused, c)
		}
	}
	return unused
}

// plain returns the connection below TLS, whose Close does not wait for a TLS alert
// to be sent.
func plain(c net.Conn) net.Conn {
	if over, is := c.(interface{ NetConn() net.Conn }); is {
		return over.NetConn()
	}
	return c
}

// host returns an address without its port.
func host(a net.Addr) string {
	name, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return name
}
