package server

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	upgrades "github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
)

// TestAbortAfterTheEnd lets the timer of a socket end after its handler: fasthttp has taken the hijacked
// connection back by then, and may have given it to another client.
func TestAbortAfterTheEnd(t *testing.T) {
	h := newHarness(t)
	p, err := auth.Authenticate(h.store, h.settings.Current().Authorization, adminToken)
	require.NoError(t, err)
	k := newSocket(h)
	k.caller = p
	done := make(chan struct{})
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/", upgrades.New(func(c *upgrades.Conn) { k.run(c.Conn); close(done) }))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = app.Listener(ln) }()
	defer func() { require.NoError(t, app.Shutdown()) }()
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+ln.Addr().String(), nil)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	<-done
	for range 100 { // fasthttp takes it back a moment later
		require.NotPanics(t, func() { k.hangUp() })
		time.Sleep(time.Millisecond)
	}
}

// newSocket returns a socket of a server that no client has opened.
func newSocket(h *harness) *socket {
	return &socket{sockets: h.server.handlers.sockets, log: slog.New(slog.DiscardHandler), answers: make(chan outgoing),
		ending: socketEnd{begun: make(chan struct{})}}
}
