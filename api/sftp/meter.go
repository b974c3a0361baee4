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
	maxAhead     = 128 << 10 // bytes on the wire that are received before the channel takes them
	maxUnread    = 8 << 20   // bytes on the wire
	wireForTaken = 4         // bytes on the wire for each byte taken from a channel, at most
)

// After these times without a call that begins or ends, the connection receives everything.
const (
	stuck = 100 * time.Millisecond // while a call is in progress: it waits for the client
	hung  = 5 * time.Second        // while none is: the storage does not answer, but keepalives are answered
)

// maxStatus is the length in bytes of what is written at once, above which it has content of files.
const maxStatus = 4 << 10

var errFlood = errors.New("the client has sent too many small packets that wait")

// meter is a connection that waits with receiving while its channel has maxAhead to take:
// a client that sends faster than the disk writes would fill the window. It goes on when the
// channel may wait for the client, which may be for something behind the requests: room
// for answers, or the rest of a request. Then it ends once more than maxUnread wait.
type meter struct {
	net.Conn
	wake chan struct{} // has a buffer of one

	mu       sync.Mutex
	ahead    int // bytes on the wire that were not taken, and what the wire adds to those that were
	unread   int // bytes on the wire, estimated: wireForTaken for each byte taken, and never below 0
	serving  bool
	calls    int       // of the channel, in progress
	contents int       // of them, writes of content, for which a client that reads much must make room
	last     time.Time // when a call has begun or ended
	closed   bool
	ended    bool
}

func newMeter(conn net.Conn) *meter { return &meter{Conn: conn, wake: make(chan struct{}, 1)} }

// Read waits until data is needed, and receives it.
func (m *meter) Read(p []byte) (int, error) {
	for d := m.delay(); d > 0; d = m.delay() {
		select {
		case <-m.wake:
		case <-time.After(d):
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

// delay returns how long Read waits before it asks again, unless there is room.
func (m *meter) delay() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ahead <= maxAhead, m.contents > 0, !m.serving, m.closed:
		return 0
	case m.calls > 0:
		return stuck - time.Since(m.last)
	}
	return min(hung-time.Since(m.last), stuck) // a call may begin
}

// resume lets Read ask again whether it waits.
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

// taken counts bytes that were taken from a channel by a call. all reports that none are left.
// That is likely, too, after a call that took long: enough to receive more, but no end of unread.
func (m *meter) taken(n int, all bool, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.ahead
	m.ahead, m.unread = max(0, m.ahead-n), max(0, m.unread-wireForTaken*n)
	if all {
		m.unread = 0
	}
	if all || took >= stuck {
		m.ahead = 0
	}
	if before > maxAhead/2 && m.ahead <= maxAhead/2 { // not for each call: a goroutine would wake up
		m.resume()
	}
}

// begin counts a call of the channel that begins, and whether it is a write of content.
func (m *meter) begin(content bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	m.last = time.Now()
	if content {
		m.contents++
		m.resume()
	}
}

// finish counts the end of a call.
func (m *meter) finish(content bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls--
	m.last = time.Now()
	if content {
		m.contents--
	}
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
	m.serving, m.ahead = serving, 0
	m.resume()
}

// metered is a channel whose calls count.
type metered struct {
	ssh.Channel
	meter *meter
}

// Read reads data of the channel. Package ssh fills p unless it has no more.
func (c metered) Read(p []byte) (int, error) {
	began := time.Now()
	c.meter.begin(false)
	defer c.meter.finish(false)
	n, err := c.Channel.Read(p)
	c.meter.taken(n, n < len(p), time.Since(began))
	return n, err
}

// Write writes data to the channel.
func (c metered) Write(p []byte) (int, error) {
	c.meter.begin(len(p) > maxStatus)
	defer c.meter.finish(len(p) > maxStatus)
	return c.Channel.Write(p)
}
