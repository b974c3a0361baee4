package server

import (
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// sockets holds the handlers that open WebSockets.
type sockets struct{ *Server }

func (s sockets) routes() []route {
	one := link(get("/ws/:id", v1.ScopeRead, s.openContainer))
	all := node(link(get("/ws", v1.ScopeRead, s.openNode)))
	one.upgrade, all.upgrade = true, true
	return []route{one, all}
}

func (s sockets) openContainer(c *fiber.Ctx) error {
	o, err := s.findContainer(c)
	if err != nil {
		return err
	}
	return s.openSocket(c, o.Meta)
}

func (s sockets) openNode(c *fiber.Ctx) error { return s.openSocket(c, v1.Meta{}) }

// buffers is the pool of write buffers. A socket holds one only while it writes.
var buffers sync.Pool

// openSocket upgrades a request to a WebSocket of a container, or of the node if
// container is zero.
func (s sockets) openSocket(c *fiber.Ctx, container v1.Meta) error {
	if !s.originAllowed(c) {
		return errOrigin
	}
	if !websocket.IsWebSocketUpgrade(c) {
		return errUpgrade
	}
	k, err := s.newSocket(c, container)
	if err != nil {
		return err
	}
	upgrade := websocket.New(func(conn *websocket.Conn) { k.run(conn.Conn) }, websocket.Config{
		ReadBufferSize: 1024, WriteBufferSize: 4096, WriteBufferPool: &buffers, // the origin was checked above
	})
	if err := upgrade(c); err != nil {
		return errMalformed
	}
	c.Locals(sessionKey, true)
	return nil
}

// newSocket returns the socket that the query parameters of a request describe.
func (s sockets) newSocket(c *fiber.Ctx, container v1.Meta) (*socket, error) {
	tail, err := intQuery(c, "tail", defaultTail, maxTail)
	if err != nil {
		return nil, err
	}
	since, replay, err := seqQuery(c)
	if err != nil {
		return nil, err
	}
	return &socket{
		server: s.Server, caller: callerOf(c), container: container.ID, uid: container.UID, tail: tail, since: since, epoch: c.Query("epoch"), replay: replay,
		log:     s.log.With(slog.String("request", requestID(c))),
		answers: make(chan outgoing),
		ended:   make(chan struct{}),
	}, nil
}

// originAllowed reports whether the Origin of a request may open a WebSocket: this
// host, an origin in server.allowed_origins, or none, since all browsers send it.
func (s sockets) originAllowed(c *fiber.Ctx) bool {
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" {
		return true
	}
	allowed := s.settings.Current().Server.AllowedOrigins
	if slices.ContainsFunc(allowed, func(a string) bool { return a == "*" || strings.EqualFold(a, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, string(c.Context().Host()))
}
