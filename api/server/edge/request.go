package edge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/sys/unix"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// Call is the state of a request, from observe until its answer is complete.
type Call struct {
	ID     string   // in the log and in X-Request-Id
	Route  string   // the path of its route, for the metrics; empty: none
	Actor  v1.Actor // who sent it; zero until it is known
	DryRun bool     // it changes nothing, whatever its method

	proved bool   // it has a valid token; without authorization no request has one
	token  string // id of that token; empty: the configured one
	tenant string // whose limits it uses
	leave  func() // frees the memory of its body; nil: it has none

	answers *limit.Slots // the memory of large answers
}

// callKey is the only local of a request: its *Call.
const callKey = "call"

// CallOf returns the state of a request. It is empty if the request failed before observe.
func CallOf(c *fiber.Ctx) *Call {
	if call, begun := c.Locals(callKey).(*Call); begun {
		return call
	}
	return &Call{}
}

// requestName is the form of an X-Request-Id that is accepted from clients.
var requestName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func newRequestID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails, as its documentation says
	return hex.EncodeToString(b[:])
}

// SetToken records the id of the valid token of a request, and the tenant for whom the
// connection and the memory for the body are counted. Those of the configured token are empty.
func SetToken(c *fiber.Ctx, id, tenant string) {
	call := CallOf(c)
	call.proved, call.token, call.tenant = true, id, tenant
	own := connOf(c)
	own.all.prove(own, tenant)
}

// QueryInt returns a query parameter between 0 and most, or absent if it is missing.
func QueryInt(c *fiber.Ctx, name string, absent, most int) (int, error) {
	text := c.Query(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || int(n) > most {
		return 0, v1.Errorf(v1.InvalidRequest, "%s: must be a number between 0 and %d", name, most)
	}
	return int(n), nil
}

// QueryBool returns a query parameter that is true or false, or false if it is missing.
func QueryBool(c *fiber.Ctx, name string) (bool, error) {
	switch c.Query(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, v1.Errorf(v1.InvalidRequest, "%s: must be true or false", name)
}

// QueryValues returns every value of a query parameter.
func QueryValues(c *fiber.Ctx, name string) (values []string) {
	for _, value := range c.Context().QueryArgs().PeekMulti(name) {
		values = append(values, string(value))
	}
	return values
}

// leftCheck is how often a long request checks whether its client has disconnected.
const leftCheck = 250 * time.Millisecond

// Context returns the context of a request. It ends when the client disconnects or
// the server is closed. Fiber's own context must not be used for work: it does not
// end with the client, and the next request on the connection reuses it.
func Context(c *fiber.Ctx) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	own := connOf(c)
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
