package sftp

import (
	"errors"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Limits on what a client has sent and nothing has read. Package ssh keeps each packet of
// a channel's window of 2 MiB, with 48 bytes of memory for a packet of one byte, which is
// 36 bytes on the wire. The client with the smallest packets that must not reach the limit
// sends each request to read, 26 bytes, in a packet of its own, 80 bytes: a whole window of
// them is 6.5 MiB.
const (
	maxUnread    = 8 << 20 // bytes on the wire
	wireForTaken = 4       // bytes on the wire for each byte taken from a channel, at most
)

var errFlood = errors.New("the client has sent too many small packets that wait")

// meter is a connection that ends when its client has sent more than maxUnread that
// nothing has taken from a channel.
type meter struct {
	net.Conn

	mu     sync.Mutex
	unread int // bytes on the wire, estimated: wireForTaken for each byte taken, and never below 0
	ended  bool
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if m.add(n) {
		return n, errFlood
	}
	return n, err
}

// add counts bytes that were received, and reports whether they are too many.
func (m *meter) add(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unread += n
	m.ended = m.ended || m.unread > maxUnread
	return m.ended
}

// taken counts bytes that were taken from a channel. all reports that none are left.
func (m *meter) taken(n int, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unread = max(0, m.unread-wireForTaken*n); all {
		m.unread = 0
	}
}

// flooded reports whether the connection has ended because of its limit.
func (m *meter) flooded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// metered is a channel whose reads count.
type metered struct {
	ssh.Channel
	meter *meter
}

// Read reads data of the channel. Package ssh fills p unless it has no more.
func (c metered) Read(p []byte) (int, error) {
	n, err := c.Channel.Read(p)
	c.meter.taken(n, n < len(p))
	return n, err
}
