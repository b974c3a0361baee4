package sftp

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstPart is the length in bytes of the first part of a longer packet: package ssh writes through a
// bufio.Writer of this size.
const firstPart = 4096

// joinedConn is a connection that sends the first part of a packet together with the next one:
// otherwise the client would wake up for each.
type joinedConn struct {
	net.Conn
	raw syscall.RawConn // of Conn
}

// joinParts returns a joinedConn if conn has a file descriptor, and conn otherwise.
func joinParts(conn net.Conn) net.Conn {
	if s, ok := conn.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return joinedConn{conn, raw}
		}
	}
	return conn
}

// Write writes a packet, or a part of one. What the first part leaves of a TCP segment waits for the
// next part, at most 200 ms; see MSG_MORE in send(2) and TCP_CORK in tcp(7).
func (c joinedConn) Write(p []byte) (sent int, err error) {
	if len(p) != firstPart {
		return c.Conn.Write(p)
	}
	var n int
	var failed error // of the last call
	err = c.raw.Write(func(fd uintptr) (done bool) {
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
