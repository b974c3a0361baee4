package server

import (
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
func (s sockets) container(c *call) error {
	o, err := c.findContainer(s.store)
	if err != nil {
		return err
	}
	return s.open(c, o.Meta)
}

// node opens a socket of all containers of the node.
func (s sockets) node(c *call) error { return s.open(c, v1.Meta{}) }

func (s sockets) open(c *call, container v1.Meta) error {
	if !ws.IsUpgrade(c.Ctx) {
		return edge.ErrUpgrade
	}
	tail, err := edge.QueryInt(c.Ctx, "tail", ws.DefaultTail, ws.MaxTail)
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
	caller, actor := c.caller, c.actor()
	actor.Via = v1.ViaWebSocket
	err = s.ws.Open(c.Ctx, ws.Request{
		Principal: caller, Actor: actor, Container: container, Tail: tail, Replay: replay, Since: since, Epoch: c.Query("epoch"),
		Resume: resume, Line: line,
		ID: edge.RequestID(c.Ctx),
	})
	if err != nil {
		return edge.ErrMalformed
	}
	c.session = true
	return nil
}
