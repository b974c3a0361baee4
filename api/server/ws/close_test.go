package ws

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	contrib "github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
)

// TestAbortAfterTheEnd lets the timer of a socket end after its handler: fasthttp has taken the hijacked
// connection back by then, and may have given it to another client.
func TestAbortAfterTheEnd(t *testing.T) {
	h := newHarness(t)
	p, err := auth.Authenticate(h.store, settings{}.Current().Authorization, configured.Reveal())
	require.NoError(t, err)
	k := &socket{sockets: h.sockets, caller: p, log: slog.New(slog.DiscardHandler), answers: make(chan outgoing), ended: make(chan struct{})}
	done := make(chan struct{})
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/", contrib.New(func(c *contrib.Conn) { k.run(c.Conn); close(done) }))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = app.Listener(ln) }()
	defer func() { require.NoError(t, app.Shutdown()) }()
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+ln.Addr().String(), nil)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	<-done
	for range 100 { // fasthttp takes it back a moment later
		require.NotPanics(t, func() { k.hangUp(false) })
		time.Sleep(time.Millisecond)
	}
}
