package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	upgrades "github.com/gofiber/contrib/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/server/edge"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// Limits on a WebSocket.
const (
	readLimit    = 64 << 10 // bytes of a message from the client
	pingEvery    = 25 * time.Second
	pongWait     = 60 * time.Second
	socketWrite  = 30 * time.Second // to send one message
	sendBuffer   = 128 << 10        // bytes of the kernel's send buffer, which would grow to megabytes
	closeTimeout = time.Second      // to send the close frame
	stopTimeout  = 3 * time.Second  // from stop until the connection is closed by force
)

// sockets opens WebSockets.
type sockets struct {
	access
	hub       *stream.Hub
	sessions  *auth.Sessions
	processes processes
	history   *limit.Slots // see limit.Histories
	open      prometheus.Gauge
	replays   chan struct{} // has one socket at a time read earlier transitions
	buffers   sync.Pool     // of write buffers; a socket holds one only while it writes
}

func newSockets(d Deps, a access, all *auth.Sessions, p processes, history *limit.Slots) *sockets {
	s := &sockets{access: a, hub: d.Hub, sessions: all, processes: p, history: history, replays: make(chan struct{}, 1),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "berth_websocket_connections", Help: "Open WebSocket connections."})}
	d.Registerer.MustRegister(s.open)
	return s
}

// ofContainer opens the socket of a container.
func (s *sockets) ofContainer(c *call) error {
	o, err := c.findContainer(s.store)
	if err != nil {
		return err
	}
	return s.upgrade(c, o.Meta)
}

// ofNode opens a socket of all containers of the node.
func (s *sockets) ofNode(c *call) error { return s.upgrade(c, v1.Meta{}) }

// upgrade answers with a socket, which is served after the handler has returned.
func (s *sockets) upgrade(c *call, container v1.Meta) error {
	if !upgrades.IsWebSocketUpgrade(c.Ctx) {
		return edge.ErrUpgrade
	}
	query, err := socketQueryOf(c)
	if err != nil {
		return err
	}
	k := &socket{sockets: s, caller: c.caller, actor: c.actor(), request: edge.CallOf(c.Ctx).ID,
		container: container.ID, uid: container.UID, query: query, answers: make(chan outgoing), ending: socketEnd{begun: make(chan struct{})}}
	k.actor.Via = v1.ViaWebSocket
	k.log = s.log.With(slog.String("request", k.request))
	err = upgrades.New(func(ws *upgrades.Conn) { k.run(ws.Conn) }, upgrades.Config{
		ReadBufferSize: 1024, WriteBufferSize: 4096, WriteBufferPool: &s.buffers,
	})(c.Ctx)
	if err != nil {
		return edge.ErrMalformed
	}
	c.session = true
	return nil
}

// socketQuery is what a client asks for when it connects.
type socketQuery struct {
	tail   int           // console lines to send at first, unless resume
	resume bool          // send the console lines behind line
	line   stream.Cursor // of resume
	replay bool          // send the transitions after since
	since  uint64        // seq of the last replayed transition
	epoch  string        // of since; empty: the client sent none
}

func socketQueryOf(c *call) (q socketQuery, err error) {
	if q.tail, err = edge.QueryInt(c.Ctx, "tail", defaultTail, maxTail); err != nil {
		return q, err
	}
	if q.since, q.replay, err = seqQuery(c); err != nil {
		return q, err
	}
	q.line, q.resume, err = lineQuery(c)
	q.epoch = c.Query("epoch")
	return q, err
}

// socket is one WebSocket connection. Only the goroutine of run writes messages; a
// second one reads the client's messages.
type socket struct {
	sockets   *sockets
	caller    auth.Principal
	actor     v1.Actor // of the client's messages
	request   string   // its id
	container string   // internal_id; empty: all containers of the node
	uid       string   // of the container
	query     socketQuery
	log       *slog.Logger

	ws       *websocket.Conn
	conn     net.Conn // below ws; the timer of ending may close it after run has returned
	done     func()   // ends the session
	listener *stream.Listener
	missing  string        // text about console lines that the client does not get; empty: none
	answers  chan outgoing // unbuffered: a client that does not read blocks its own commands
	ending   socketEnd
}

// socketEnd is how a socket ends.
type socketEnd struct {
	once   sync.Once
	begun  chan struct{} // closed by stop
	code   int           // of the close frame; written before begun is closed
	reason string
	abort  *time.Timer
}

// run serves the socket from the upgrade until the connection is closed.
func (k *socket) run(ws *websocket.Conn) {
	k.ws, k.conn = ws, below(ws)
	k.keepLittle()
	defer func() {
		k.stop(websocket.CloseInternalServerErr, "internal error")
		k.hangUp()
		k.ending.abort.Stop()
	}()
	defer k.recovered()
	defer k.sockets.forget(k.caller)
	if err := k.begin(); err != nil {
		k.end(err)
		k.sendClose()
		return
	}
	defer func() {
		k.done()
		k.sockets.open.Dec()
	}()
	if err := k.listen(); err != nil {
		k.stopFor(err)
		k.sendClose()
		return
	}
	defer k.listener.Close()
	k.live()
}

// recovered ends the socket if one of its goroutines panics. It is deferred.
func (k *socket) recovered() {
	if p := recover(); p != nil {
		k.log.Error("WebSocket panicked", slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		k.stop(websocket.CloseInternalServerErr, "internal error")
	}
}

// listen begins to listen, at the end of the consoles or where the client has read.
func (k *socket) listen() (err error) {
	if !k.query.resume {
		k.listener, err = k.sockets.hub.Listen(k.container)
		return err
	}
	waiting, cancel := context.WithTimeout(context.Background(), historyWait)
	defer cancel()
	k.listener, k.missing, err = k.sockets.hub.ListenFrom(waiting, k.container, k.query.line)
	return err
}

// live sends the snapshot, and then messages in both directions until one side
// closes the connection.
func (k *socket) live() {
	ctx, cancel := context.WithCancel(context.Background())
	var others sync.WaitGroup
	defer others.Wait()
	defer k.hangUp() // ends the reader
	defer cancel()
	others.Go(func() { k.readMessages(ctx) })
	if err := k.sendSnapshot(ctx); err != nil {
		k.stopFor(err)
		k.sendClose()
		return
	}
	k.stopFor(k.write(ctx))
	k.sendClose()
}

// write sends what the listener has, answers and pings until the socket stops or the
// connection breaks.
func (k *socket) write(ctx context.Context) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-k.ending.begun:
			return nil
		case <-k.listener.Ready():
			var list []stream.Message
			list, err = k.listener.Take(ctx)
			for _, m := range list {
				if m.Transition != nil && k.caller.Restricted() {
					m = k.messageFor(*m.Transition)
				}
				if err := k.send(m); err != nil {
					return err
				}
			}
		case answer := <-k.answers:
			err = answer()
		case <-ping.C:
			err = k.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(socketWrite))
		}
		if err != nil {
			return err
		}
	}
}

// messageFor returns the message of a transition as the token of the socket sees it.
func (k *socket) messageFor(e v1.Event) stream.Message {
	e = k.caller.Show(e)
	if k.container == "" {
		return stream.NodeMessage(&e)
	}
	return stream.EventMessage(&e)
}

func (k *socket) send(m stream.Message) error { return k.sendText(m.Encode(), socketWrite) }

// sendText sends a message within a time, unless the socket ends.
func (k *socket) sendText(text []byte, within time.Duration) error {
	select {
	case <-k.ending.begun:
		return nil
	default:
	}
	if err := k.ws.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	return k.ws.WriteMessage(websocket.TextMessage, text)
}

// begin registers the socket as a session. The session calls end when the token or
// the container is no longer valid.
func (k *socket) begin() (err error) {
	listens := k.container
	if listens == "" {
		listens = wholeNode
	}
	k.done, err = k.sockets.sessions.Begin(&auth.Session{Principal: k.caller, Container: listens, Check: k.check, End: k.end})
	if err != nil {
		return err
	}
	k.sockets.open.Inc()
	return nil
}

// wholeNode is the container of a node's socket where sessions are counted. It is
// not a valid internal_id.
const wholeNode = "*"

// check returns auth.ErrGone if the socket's container is deleted, even if another
// one has taken its internal_id.
func (k *socket) check(tx *store.Tx, _ auth.Principal) error {
	if k.container == "" {
		return nil
	}
	o, err := store.Containers.Get(tx, k.container)
	if errors.Is(err, store.ErrNotFound) || err == nil && o.Meta.UID != k.uid {
		return auth.ErrGone
	}
	return err
}

// stop ends the socket with a close frame. Only the first call has an effect.
func (k *socket) stop(code int, reason string) {
	k.ending.once.Do(func() {
		k.ending.code, k.ending.reason = code, reason
		close(k.ending.begun)
		k.ending.abort = time.AfterFunc(stopTimeout, func() { _ = k.conn.Close() })
	})
}

// stopFor stops the socket with the close code and reason for an error. A nil
// error and a broken connection have no reason.
func (k *socket) stopFor(err error) {
	var refusal *v1.Error
	switch {
	case errors.Is(err, auth.ErrExpired):
		k.stop(websocket.ClosePolicyViolation, "token has expired")
	case errors.Is(err, auth.ErrUnauthorized):
		k.stop(websocket.ClosePolicyViolation, "token is revoked")
	case errors.Is(err, auth.ErrGone), errors.Is(err, stream.ErrGone):
		k.stop(websocket.CloseNormalClosure, "container is deleted")
	case errors.Is(err, auth.ErrShutdown), errors.Is(err, stream.ErrClosed):
		k.stop(websocket.CloseGoingAway, "shutting down")
	case errors.Is(err, stream.ErrSlow):
		k.stop(websocket.CloseTryAgainLater, "too slow for state events; resume with since")
	case errors.As(err, &refusal):
		k.stop(websocket.CloseTryAgainLater, refusal.Message)
	case errors.Is(err, errInternal):
		k.log.Error("WebSocket failed", slog.Any("err", err))
		k.stop(websocket.CloseInternalServerErr, "internal error")
	}
	k.stop(websocket.CloseNormalClosure, "")
}

// errInternal is an error that is not the client's.
var errInternal = errors.New("could not serve a WebSocket")

// sendClose sends the close frame, on a best-effort basis.
func (k *socket) sendClose() {
	frame := websocket.FormatCloseMessage(k.ending.code, k.ending.reason)
	_ = k.ws.WriteControl(websocket.CloseMessage, frame, time.Now().Add(closeTimeout))
}

// hangUp closes the connection. It lingers, so that the close frame arrives.
func (k *socket) hangUp() {
	if own, can := k.conn.(interface{ Linger() }); can {
		own.Linger()
	}
	_ = k.conn.Close()
}

// below returns the connection below that of a hijacked request, whose own Close does nothing until
// the handler returns. From then on fasthttp uses the hijacked one for another client.
func below(ws *websocket.Conn) net.Conn {
	c := ws.NetConn()
	if hijacked, is := c.(interface{ UnsafeConn() net.Conn }); is {
		return hijacked.UnsafeConn()
	}
	return c
}

// keepLittle bounds the kernel's send buffer, so that a slow client is noticed early.
func (k *socket) keepLittle() {
	if c, can := k.conn.(interface{ SetWriteBuffer(int) error }); can {
		_ = c.SetWriteBuffer(sendBuffer) // on failure the larger default does no harm
	}
}

// end stops the socket for the end of its session.
func (k *socket) end(reason error) { k.stopFor(fmt.Errorf("%w: %w", errInternal, reason)) }
