package sftp

import (
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Limits on what a client has sent and nothing has read. Package ssh keeps each packet of
// a channel's window of 2 MiB, with 48 bytes of memory for a packet of one byte, which is
// 36 bytes on the wire. The client with the smallest packets that must not reach maxUnread
// sends each request to read, 26 bytes, in a packet of its own, 80 bytes: a whole window of
// them is 6.5 MiB.
const (
	maxAhead     = 128 << 10 // bytes on the wire that are received before they are needed
	maxUnread    = 8 << 20   // bytes on the wire
	wireForTaken = 4         // bytes on the wire for each byte taken from a channel, at most

	stuck = 100 * time.Millisecond // a call of the channel waits for the client
)

var errFlood = errors.New("the client has sent too many small packets that wait")

// meter is a connection that receives no more than maxAhead of what its channel does not read:
// a client that sends faster than the disk writes would fill the window. But once a call of the
// channel is stuck, it receives everything, because the call may wait for what the client has sent
// behind its requests, such as room for answers. Then it ends when more than maxUnread wait.
type meter struct {
	net.Conn
	wake chan struct{} // has a buffer of one

	mu      sync.Mutex
	ahead   int // bytes on the wire, at least those that the channel has
	unread  int // bytes on the wire, estimated: wireForTaken for each byte taken, and never below 0
	serving bool
	calls   int       // of the channel, in progress
	last    time.Time // when a call has begun or ended
	closed  bool
	ended   bool
}

func newMeter(conn net.Conn) *meter { return &meter{Conn: conn, wake: make(chan struct{}, 1)} }

// Read receives data.
func (m *meter) Read(p []byte) (int, error) {
	for m.enough() {
		select {
		case <-m.wake:
		case <-time.After(stuck):
		}
	}
	n, err := m.Conn.Read(p)
	if m.add(n) {
		return n, errFlood
	}
	return n, err
}

// Close ends a Read that waits, too.
func (m *meter) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.resume()
	return m.Conn.Close()
}

// enough reports whether the channel has enough to read.
func (m *meter) enough() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ahead <= maxAhead || !m.serving || m.closed {
		return false
	}
	return m.calls == 0 || time.Since(m.last) < stuck
}

// resume lets Read look again whether there is enough.
func (m *meter) resume() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// add counts bytes that were received, and reports whether they are too many.
func (m *meter) add(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead += n
	m.unread += n
	m.ended = m.ended || m.unread > maxUnread
	return m.ended
}

// taken counts bytes that were taken from a channel. all reports that none are left.
func (m *meter) taken(n int, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.ahead
	m.ahead, m.unread = max(0, m.ahead-n), max(0, m.unread-wireForTaken*n)
	if all {
		m.ahead, m.unread = 0, 0
	}
	if before > maxAhead/2 && m.ahead <= maxAhead/2 { // not for each read: a goroutine would wake up
		m.resume()
	}
}

// call counts calls of the channel that begin, or end if by is negative.
func (m *meter) call(by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls += by
	m.last = time.Now()
}

// flooded reports whether the connection has ended because of its limit.
func (m *meter) flooded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// serve returns a channel of the connection whose calls count, until done is called.
func (m *meter) serve(channel ssh.Channel) (counted metered, done func()) {
	m.serves(true)
	return metered{channel, m}, func() { m.serves(false) }
}

func (m *meter) serves(serving bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serving = serving
	m.resume()
}

// metered is a channel whose calls count.
type metered struct {
	ssh.Channel
	meter *meter
}

// Read reads data of the channel. Package ssh fills p unless it has no more.
func (c metered) Read(p []byte) (int, error) {
	c.meter.call(1)
	defer c.meter.call(-1)
	n, err := c.Channel.Read(p)
	c.meter.taken(n, n < len(p))
	return n, err
}

// Write writes data to the channel.
func (c metered) Write(p []byte) (int, error) {
	c.meter.call(1)
	defer c.meter.call(-1)
	return c.Channel.Write(p)
}
