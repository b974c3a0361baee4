package sftp

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
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

// firstPart is the length in bytes of the first part of a longer packet: package ssh writes through a
// bufio.Writer of this size.
const firstPart = 4096

var errFlood = errors.New("the client has sent too many small packets that wait")

// meter is a connection that joins the parts of a packet, and ends when its client has sent more than maxUnread that
// nothing has taken from a channel.
type meter struct {
	net.Conn
	raw syscall.RawConn // of Conn; nil if it has none

	mu     sync.Mutex
	unread int // bytes on the wire, estimated: wireForTaken for each byte taken, and never below 0
	ended  bool
}

func newMeter(conn net.Conn) *meter {
	m := &meter{Conn: conn}
	if s, ok := conn.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			m.raw = raw
		}
	}
	return m
}

// Write writes a packet, or a part of one. The first part leaves together with the rest: the client
// would wake up for each.
func (m *meter) Write(p []byte) (int, error) {
	if m.raw == nil || len(p) != firstPart {
		return m.Conn.Write(p)
	}
	return sendMore(m.raw, p)
}

// sendMore sends p with what is sent next, or after 200 ms; see MSG_MORE in send(2).
func sendMore(conn syscall.RawConn, p []byte) (sent int, err error) {
	var n int
	var failed error // of the last call
	err = conn.Write(func(fd uintptr) (done bool) {
		for sent < len(p) {
			switch n, failed = unix.SendmsgN(int(fd), p[sent:], nil, nil, unix.MSG_MORE); failed {
			case nil:
				sent += n
			case unix.EINTR:
			default:
				return failed != unix.EAGAIN
			}
		}
		return true
	})
	if err != nil {
		return sent, err
	}
	return sent, failed
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
