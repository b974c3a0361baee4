package edge

import (
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// steady is a connection whose client reads 64 KiB in a second, and whose deadline holds.
type steady struct {
	net.Conn
	deadline time.Time
	got      int
}

func (s *steady) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }

func (s *steady) Write(p []byte) (n int, err error) {
	for n < len(p) {
		time.Sleep(time.Second)
		if time.Now().After(s.deadline) {
			return n, &net.OpError{Op: "write", Err: timeoutError{}}
		}
		n = min(len(p), n+64<<10)
	}
	s.got += n
	return n, nil
}

type timeoutError struct{}

func (timeoutError) Error() string { return "timeout" }
func (timeoutError) Timeout() bool { return true }

// TestWriteInParts: the time limit of an answer is for its parts, not for all of it.
func TestWriteInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &steady{}
		n, err := (&conn{Conn: below}).Write(make([]byte, 24<<20))
		require.NoError(t, err)
		require.Equal(t, []int{24 << 20, 24 << 20}, []int{n, below.got})
	})
}

// TestWriteEndsAtItsOwnDeadline: a WebSocket gives its last frame a second, not the time of a part of an answer.
func TestWriteEndsAtItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, other := net.Pipe() // whose client does not read
		defer other.Close()
		c := &conn{Conn: own}
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		began := time.Now()
		_, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, c.SetWriteDeadline(time.Time{}))
		began = time.Now()
		_, err = c.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, writeTimeout, time.Since(began))
	})
}
