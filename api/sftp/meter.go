package sftp

import (
	"errors"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Limits on what a client has sent and nothing has read. Package ssh keeps each packet of
// a channel's window of 2 MiB, with 48 bytes of memory for a packet of one byte, which is
// 36 bytes on the wire. The client with the smallest packets that must not reach maxUnread
// sends each request to read, 26 bytes, in a packet of its own, 80 bytes: a whole window of
// them is 6.5 MiB.
const (
	maxUnread = 8 << 20 // bytes on the wire, for each channel
	wireExtra = 128     // bytes on the wire besides a request: its packet, and that for the room of its answer
)

var errFlood = errors.New("the client has sent too many small packets that wait")

// meter is a connection that ends when too much of what it has received waits in its channels. It
// estimates what waits: of all that was received, the requests that were taken are subtracted with
// wireExtra, and when all channels are empty nothing waits.
type meter struct {
	net.Conn

	mu       sync.Mutex
	unread   int
	channels int // open
	reading  int // of them, in a call of Read
	flooded  bool
}

// Read receives data.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unread += n; m.unread > maxUnread*max(1, m.channels) {
		m.flooded = true
	}
	if m.flooded {
		return n, errFlood
	}
	return n, err
}

// taken counts a request that was taken from a channel, with its length in bytes.
func (m *meter) taken(length int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unread = max(0, m.unread-length-wireExtra)
}

// hasFlooded reports whether the connection has ended because of its limit.
func (m *meter) hasFlooded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.flooded
}

// open counts a channel until closed is called.
func (m *meter) open() (closed func()) {
	count := func(n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.channels += n; m.channels == 0 {
			m.unread = 0
		}
	}
	count(1)
	return func() { count(-1) }
}

// metered is a channel whose reads count.
type metered struct {
	ssh.Channel
	meter *meter
}

// Read reads data of the channel. Package ssh fills p unless it has no more. A channel that is being
// read is empty, or will be soon.
func (c metered) Read(p []byte) (int, error) {
	c.meter.read(1, false)
	n, err := c.Channel.Read(p)
	c.meter.read(-1, n < len(p))
	return n, err
}

func (m *meter) read(n int, empty bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if empty && m.reading == m.channels {
		m.unread = 0
	}
	m.reading += n
}
