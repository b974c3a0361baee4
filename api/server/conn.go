package server

import (
	"container/list"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// The bounds of a lingering close.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20
)

// conn is a connection whose client has to take each chunk within writeTimeout.
type conn struct {
	net.Conn
	all    *connections
	owner  owner         // belongs to all
	place  *list.Element // belongs to all; nil: it was taken out
	used   atomic.Bool   // something has come
	over   atomic.Bool   // nothing more will come
	linger atomic.Bool   // the client is still sending what nobody reads
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

// abort breaks the connection at once, also under a Read or Write that waits.
// The connection still has to be closed.
func (c *conn) abort() {
	raw := c.Conn
	if tls, is := raw.(interface{ NetConn() net.Conn }); is {
		raw = tls.NetConn() // the other's Close may wait for the client
	}
	_ = raw.Close()
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
	c.all.remove(c)
	return c.Conn.Close()
}
