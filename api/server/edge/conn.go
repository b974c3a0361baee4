package edge

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
)

// Limits on a lingering close, see conn.Close.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20
)

// Parts of an answer, which a client has to receive within writeTimeout each.
const (
	writePart = 256 << 10 // in memory
	filePart  = 1 << 20   // of a file
)

// conn is a connection of the listener.
type conn struct {
	net.Conn
	all      *connections
	closing  <-chan struct{}           // closed with the listener
	leave    func()                    // frees its slot; guarded by all.mu
	proved   bool                      // a request had a valid token; guarded by all.mu
	tenant   string                    // of that token; guarded by all.mu
	deadline atomic.Pointer[time.Time] // of writes, see SetWriteDeadline
	used     atomic.Bool               // at least one byte was received
	over     atomic.Bool               // the client has closed its side
	linger   atomic.Bool               // Close discards what the client still sends
}

// Read reads from the connection, and records the first byte and the end.
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

// SetWriteDeadline bounds the writes to come, besides writeTimeout: a WebSocket has limits of its own.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.deadline.Store(&t)
	return c.Conn.SetWriteDeadline(t)
}

// limitPart sets the deadline of one part of an answer.
func (c *conn) limitPart() error {
	deadline := time.Now().Add(writeTimeout)
	if own := c.deadline.Load(); own != nil && !own.IsZero() && own.Before(deadline) {
		deadline = *own
	}
	return c.Conn.SetWriteDeadline(deadline)
}

// Write writes p, each part within writeTimeout: a client may be slow, and must not pause.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		part := p[n:min(len(p), n+writePart)]
		if err := c.limitPart(); err != nil {
			return n, err
		}
		sent, err := c.Conn.Write(part)
		if n += sent; err != nil || n == len(p) {
			return n, err
		}
	}
}

// ReadFrom sends a file by sendfile(2) where the system can, each part within
// writeTimeout.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	var sent int64
	for {
		if err := c.limitPart(); err != nil {
			return sent, err
		}
		n, err := io.CopyN(c.Conn, r, filePart)
		sent += n
		if err == io.EOF {
			return sent, nil
		}
		if err != nil {
			return sent, err
		}
	}
}

// abort closes the underlying connection at once and interrupts Read and Write.
// The caller must still call Close.
func (c *conn) abort() {
	_ = plain(c.Conn).Close()
}

// Close removes the connection from the registry and closes it. If linger is set
// the client is still sending, and a plain close would reset the connection and
// lose the answer. So Close first closes the write side only, and discards what
// arrives for lingerTime or lingerBytes.
func (c *conn) Close() error {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can && c.linger.Swap(false) {
		_ = half.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	c.all.remove(c)
	return c.Conn.Close()
}

// connOf returns the connection of a request.
func connOf(c *fiber.Ctx) *conn { return c.Context().Conn().(*conn) }

// Abort returns a function that closes the connection of a request at once, even
// while its answer is being sent. It may be called after the handler has returned.
func Abort(c *fiber.Ctx) func() { return connOf(c).abort }

// Linger has Close linger.
func (c *conn) Linger() { c.linger.Store(true) }

// SetWriteBuffer bounds the bytes in the kernel's send buffer.
func (c *conn) SetWriteBuffer(bytes int) error {
	if below, can := c.Conn.(interface{ SetWriteBuffer(int) error }); can {
		return below.SetWriteBuffer(bytes)
	}
	return nil
}
