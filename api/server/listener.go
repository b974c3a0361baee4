package server

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// defaultConnsPerIP is far above what a panel needs, and far below what a
// machine can bear.
const defaultConnsPerIP = 4096

// listener closes connections of an address that has too many, and gives each
// write of the others a deadline.
type listener struct {
	net.Listener
	max int

	mu   sync.Mutex
	open map[string]int     // by address
	all  map[*conn]struct{} // all of them

	closing func() error // close, once
}

func newListener(ln net.Listener, max int) *listener {
	if max <= 0 {
		max = defaultConnsPerIP
	}
	l := &listener{Listener: ln, max: max, open: map[string]int{}, all: map[*conn]struct{}{}}
	l.closing = sync.OnceValue(l.close)
	return l
}

// Accept returns the next connection that is not one too many.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := host(c.RemoteAddr())
		own := &conn{Conn: c}
		own.done = sync.OnceFunc(func() { l.remove(own, address) })
		if l.add(own, address) {
			return own, nil
		}
		_ = c.Close()
	}
}

func host(a net.Addr) string {
	name, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return name
}

func (l *listener) add(c *conn, address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address] >= l.max {
		return false
	}
	l.open[address]++
	l.all[c] = struct{}{}
	return true
}

func (l *listener) remove(c *conn, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, c)
	if l.open[address]--; l.open[address] <= 0 {
		delete(l.open, address)
	}
}

// Close takes no more connections, and closes those on which nothing has come
// yet: the library would wait for them when it shuts down.
func (l *listener) Close() error { return l.closing() }

func (l *listener) close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	var unused []*conn
	for c := range l.all {
		if !c.used.Load() {
			unused = append(unused, c)
		}
	}
	l.mu.Unlock()
	for _, c := range unused {
		_ = c.Close()
	}
	return err
}

// The bounds of a lingering close.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20
)

// conn is a connection whose client has to take each chunk within writeTimeout.
type conn struct {
	net.Conn
	done   func()
	used   atomic.Bool // something has come
	over   atomic.Bool // nothing more will come
	linger atomic.Bool // the client is still sending what nobody reads
}

// Read notes that something has come.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.used.Load() {
		c.used.Store(true)
	}
	if err == io.EOF {
		c.over.Store(true)
	}
	return n, err
}

// Write gives the whole of p one deadline.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// ReadFrom sends a file without a copy in memory, with a deadline for each part of it.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	const part = 1 << 20
	var sent int64
	for {
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return sent, err
		}
		n, err := io.CopyN(c.Conn, r, part)
		sent += n
		if err == io.EOF {
			return sent, nil
		}
		if err != nil {
			return sent, err
		}
	}
}

// Close closes the connection and counts it out, once. If the client is still
// sending, a plain close would make its system throw away the answer: so first
// only our side is closed, and for a while what comes is read and thrown away.
func (c *conn) Close() error {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can && c.linger.Swap(false) {
		_ = half.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	c.done()
	return c.Conn.Close()
}
