package server

import (
	"io"
	"net"
	"sync"
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
	open map[string]int // by address
}

func newListener(ln net.Listener, max int) *listener {
	if max <= 0 {
		max = defaultConnsPerIP
	}
	return &listener{Listener: ln, max: max, open: map[string]int{}}
}

// Accept returns the next connection that is not one too many.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := host(c.RemoteAddr())
		if l.add(address) {
			return &conn{Conn: c, done: sync.OnceFunc(func() { l.remove(address) })}, nil
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

func (l *listener) add(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address] >= l.max {
		return false
	}
	l.open[address]++
	return true
}

func (l *listener) remove(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address]--; l.open[address] <= 0 {
		delete(l.open, address)
	}
}

// conn is a connection whose client has to take each chunk within writeTimeout.
type conn struct {
	net.Conn
	done func()
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

// Close closes the connection and counts it out, once.
func (c *conn) Close() error {
	c.done()
	return c.Conn.Close()
}
