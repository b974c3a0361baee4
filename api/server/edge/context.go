package edge

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/sys/unix"
)

// leftCheck is how often a long request checks whether its client has disconnected.
const leftCheck = 250 * time.Millisecond

// Context returns the context of a request. It ends when the client disconnects or
// the server is closed. Fiber's own context must not be used for work: it does not
// end with the client, and the next request on the connection reuses it.
func Context(c *fiber.Ctx) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	own, is := c.Context().Conn().(*conn)
	if !is { // a test without a network
		return ctx, cancel
	}
	raw := rawConn(own.Conn)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(leftCheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-own.closing:
				cancel()
				return
			case <-tick.C:
			}
			if raw != nil && left(raw) {
				cancel()
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-done }
}

// rawConn returns the socket below a connection, or nil if there is none.
func rawConn(c net.Conn) syscall.RawConn {
	tcp, is := plain(c).(syscall.Conn)
	if !is {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// left reports whether the peer has closed its side of the connection. It
// consumes no data.
func left(raw syscall.RawConn) (gone bool) {
	err := raw.Control(func(fd uintptr) {
		set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(set, 0)
		gone = err == nil && n > 0 && set[0].Revents != 0
	})
	return gone || err != nil
}
