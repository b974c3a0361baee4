package ws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
	"berth/store"
)

const configured = v1.Secret("berth_00000000000000000000000000000000")

// settings is a configuration that does not change.
type settings struct{}

func (settings) Current() v1.Config {
	return v1.Config{Authorization: v1.AuthorizationConfig{Enabled: true, Token: configured}}
}
func (settings) Changed() <-chan struct{} { return nil }

// containers records what clients have asked for.
type containers struct {
	mu   sync.Mutex
	done []string
}

func (c *containers) Find(*store.Tx, string) error { return nil }
func (c *containers) Power(_ store.Writer, _ auth.Principal, id, verb string) error {
	return c.Command(context.Background(), auth.Principal{}, id, verb)
}

func (c *containers) Command(_ context.Context, _ auth.Principal, id, command string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, id+" "+command)
	return nil
}
func (c *containers) Resize(_ context.Context, id string, columns, rows uint) error {
	return c.Command(context.Background(), auth.Principal{}, id, fmt.Sprint(columns, " ", rows))
}

func (c *containers) Stats(context.Context, string) (v1.Stats, error) { return v1.Stats{}, nil }

// harness serves the sockets of a store with two containers, mc and other.
type harness struct {
	t          *testing.T
	store      *store.Store
	sessions   *auth.Sessions
	containers *containers
	sockets    *Sockets
	address    string
}

func newHarness(t *testing.T) *harness {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	h := &harness{t: t, store: s, containers: &containers{}, sessions: auth.NewSessions(s, settings{})}
	for _, id := range []string{"mc", "other"} {
		require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, id, v1.ContainerSpec{}) }))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.sessions.Run(ctx) })
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	h.sockets = New(Deps{
		Store: s, Settings: settings{}, Hub: stream.New(t.TempDir(), stream.Options{}), Sessions: h.sessions, Containers: h.containers,
		Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
		Refusal: func(err error) (string, bool) { var e *v1.Error; errors.As(err, &e); return e.Message, false },
		Forget:  func(p auth.Principal) { _ = auth.Forget(s, p) },
		Pace:    func(context.Context, auth.Principal) error { return nil },
		Finish:  func(_ *store.Request, _ auth.Principal, err error) error { return err },
	})
	app.Get("/ws/:id?", h.open(h.sockets))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h.address = ln.Addr().String()
	running.Go(func() { _ = app.Listener(ln) })
	t.Cleanup(func() {
		h.sessions.Close()
		require.NoError(t, h.sessions.Wait(context.Background()))
		_ = app.Shutdown()
		_ = ln.Close() // Shutdown does not if Listener has not begun
		cancel()
		running.Wait()
	})
	return h
}

// open returns the handler that authenticates as package server does.
func (h *harness) open(s *Sockets) fiber.Handler {
	return func(c *fiber.Ctx) error {
		p, err := auth.Authenticate(h.store, settings{}.Current().Authorization, c.Query("token"))
		if err == nil {
			err = auth.Spend(h.store, p)
		}
		if err != nil {
			return err
		}
		r := Request{Principal: p, Actor: v1.Actor{Via: v1.ViaWebSocket, Address: "192.0.2.1", OnBehalfOf: "joe"},
			Replay: c.Query("since") != ""}
		if id := c.Params("id"); id != "" {
			if err := h.store.View(func(tx *store.Tx) error {
				o, err := store.Containers.Get(tx, id)
				r.Container = o.Meta
				return err
			}); err != nil {
				return err
			}
		}
		return s.Open(c, r)
	}
}

func (h *harness) mint(g auth.Grant) string {
	h.t.Helper()
	if g.TTL == 0 {
		g.TTL = time.Hour
	}
	minter, err := auth.Authenticate(h.store, settings{}.Current().Authorization, configured.Reveal())
	require.NoError(h.t, err)
	secret, _, err := auth.Mint(h.store, settings{}.Current().Authorization, minter, g)
	require.NoError(h.t, err)
	return secret.Reveal()
}

// client is the client's side of a socket.
type client struct {
	t *testing.T
	*websocket.Conn
}

// message is a message that a client has received.
type message struct {
	Event, Data, Container string
}

// dial opens a socket and reads the current states.
func (h *harness) dial(path, token string, states int) *client {
	h.t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+h.address+path+"?token="+token, nil)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(h.t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	c := &client{h.t, conn}
	for range states {
		require.Equal(h.t, v1.EventState, c.next().Event)
	}
	return c
}

func (c *client) next() (m message) {
	c.t.Helper()
	_, raw, err := c.ReadMessage()
	require.NoError(c.t, err)
	openapitest.CheckValue(c.t, "SocketMessage", raw)
	require.NoError(c.t, json.Unmarshal(raw, &m))
	return m
}

func (c *client) write(text string) {
	c.t.Helper()
	require.NoError(c.t, c.WriteMessage(websocket.TextMessage, []byte(text)))
}

// closed returns the close frame that must follow.
func (c *client) closed() *websocket.CloseError {
	c.t.Helper()
	_, raw, err := c.ReadMessage()
	var end *websocket.CloseError
	require.ErrorAs(c.t, err, &end, "%s", raw)
	return end
}
