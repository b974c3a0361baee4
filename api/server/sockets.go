package server

import (
	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	"berth/api/server/ws"
	v1 "berth/api/v1"
	"berth/store"
)

// sockets holds the handlers that open WebSockets.
type sockets struct {
	store  *store.Store
	access access
	ws     *ws.Sockets
}

// container opens the socket of a container.
func (s sockets) container(c *fiber.Ctx) error {
	o, err := findContainer(c, s.store)
	if err != nil {
		return err
	}
	return s.open(c, o.Meta)
}

// node opens a socket of all containers of the node.
func (s sockets) node(c *fiber.Ctx) error { return s.open(c, v1.Meta{}) }

func (s sockets) open(c *fiber.Ctx, container v1.Meta) error {
	if !ws.IsUpgrade(c) {
		return edge.ErrUpgrade
	}
	tail, err := edge.QueryInt(c, "tail", ws.DefaultTail, ws.MaxTail)
	if err != nil {
		return err
	}
	since, replay, err := seqQuery(c)
	if err != nil {
		return err
	}
	line, resume, err := lineQuery(c)
	if err != nil {
		return err
	}
	caller, actor := callerOf(c), edge.Actor(c)
	actor.Via = v1.ViaWebSocket
	err = s.ws.Open(c, ws.Request{
		Principal: caller, Actor: actor, Container: container, Tail: tail, Replay: replay, Since: since, Epoch: c.Query("epoch"),
		Resume: resume, Line: line,
		ID: edge.RequestID(c),
	})
	if err != nil {
		return edge.ErrMalformed
	}
	callOf(c).session = true
	return nil
}
