package edge

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"berth/api/limit"
)

// Bounds of the backoff between failed calls of Accept.
const (
	acceptRetryMin = 5 * time.Millisecond
	acceptRetryMax = 500 * time.Millisecond
)

// acceptLogEvery is the least time between two log lines about failed Accepts.
const acceptLogEvery = 10 * time.Second

// listener accepts connections until it is closed. It retries after every error of
// Accept: EMFILE, ENFILE, ENOBUFS and ENOMEM are temporary, and of an unknown
// error it assumes the same.
type listener struct {
	net.Listener
	conns   *connections
	log     *slog.Logger
	closed  chan struct{}
	closing func() error // calls close once

	failed int       // failed Accepts since the last log line
	logged time.Time // time of the last log line
}

func newListener(ln net.Listener, conns *connections, log *slog.Logger) *listener {
	l := &listener{Listener: ln, conns: conns, log: log, closed: make(chan struct{})}
	l.closing = sync.OnceValue(l.close)
	return l
}

// Accept returns the next connection. Its only error is net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	delay := acceptRetryMin
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil {
			l.logFailure(err)
			select {
			case <-l.closed:
				return nil, net.ErrClosed
			case <-time.After(delay):
			}
			delay = min(2*delay, acceptRetryMax)
			continue
		}
		own := &conn{Conn: c, all: l.conns, closing: l.closed}
		l.conns.add(own)
		return own, nil
	}
}

// logFailure logs an error of Accept, at most once per acceptLogEvery.
func (l *listener) logFailure(err error) {
	l.failed++
	if time.Since(l.logged) < acceptLogEvery {
		return
	}
	l.log.Error("could not accept a connection; retrying", "err", err, "tries", l.failed)
	l.failed, l.logged = 0, time.Now()
}

// Close stops accepting connections, and closes those on which no byte was
// received yet: the HTTP library would wait for them during a shutdown.
func (l *listener) Close() error { return l.closing() }

func (l *listener) close() error {
	close(l.closed)
	err := l.Listener.Close()
	for _, c := range l.conns.unused() {
		_ = c.Close()
	}
	return err
}

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

func newConnections(shared func(ip string) bool) *connections {
	return &connections{anonymous: limit.NewSlots(limit.Anonymous), known: limit.NewSlots(limit.Connections),
		shared: shared, open: map[*conn]struct{}{}}
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
