package ws

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"berth/api/auth"
	"berth/api/stream"
	v1 "berth/api/v1"
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

// socket is one WebSocket connection. Only the goroutine of run writes messages; a
// second one reads the client's messages.
type socket struct {
	sockets   *Sockets
	request   Request
	caller    auth.Principal
	container string // internal_id; empty: all containers of the node
	since     uint64 // seq of the last replayed transition
	log       *slog.Logger

	ws       *websocket.Conn
	conn     net.Conn // below ws; the timer abort may close it after run has returned
	done     func()   // ends the session
	listener *stream.Listener
	missing  string        // text about console lines that the client does not get; empty: none
	answers  chan outgoing // unbuffered: a client that does not read blocks its own commands

	stopOnce sync.Once
	ended    chan struct{} // closed by stop
	code     int           // of the close frame; written before ended is closed
	reason   string
	abort    *time.Timer
}

// run serves the socket from the upgrade until the connection is closed.
func (k *socket) run(ws *websocket.Conn) {
	k.ws, k.conn = ws, below(ws)
	k.keepLittle()
	defer func() {
		if p := recover(); p != nil {
			k.log.Error("WebSocket panicked", slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		}
		k.stop(websocket.CloseInternalServerErr, "internal error")
		k.hangUp(true)
		k.abort.Stop()
	}()
	defer k.sockets.Forget(k.caller)
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

// listen begins to listen, at the end of the consoles or where the client has read.
func (k *socket) listen() (err error) {
	if !k.request.Resume {
		k.listener, err = k.sockets.Hub.Listen(k.container)
		return err
	}
	waiting, cancel := context.WithTimeout(context.Background(), HistoryWait)
	defer cancel()
	k.listener, k.missing, err = k.sockets.Hub.ListenFrom(waiting, k.container, k.request.Line)
	return err
}

// live sends the snapshot, and then messages in both directions until one side
// closes the connection.
func (k *socket) live() {
	ctx, cancel := context.WithCancel(context.Background())
	var others sync.WaitGroup
	defer others.Wait()
	defer k.hangUp(true) // ends the reader
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
		case <-k.ended:
			return nil
		case <-k.listener.Ready():
			err = k.sendReady(ctx)
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

// sendReady sends the messages that the listener has.
func (k *socket) sendReady(ctx context.Context) error {
	list, err := k.listener.Take(ctx)
	for _, m := range list {
		if m.Transition != nil && k.caller.Restricted() {
			m = k.messageFor(*m.Transition)
		}
		if err := k.send(m); err != nil {
			return err
		}
	}
	return err
}

// messageFor returns the message of a transition as the token of the socket sees it.
func (k *socket) messageFor(e v1.Event) stream.Message {
	e = k.caller.Show(e)
	return stream.EventMessage(&e, k.container == "")
}

func (k *socket) send(m stream.Message) error {
	select {
	case <-k.ended:
		return nil
	default:
	}
	if err := k.ws.SetWriteDeadline(time.Now().Add(socketWrite)); err != nil {
		return err
	}
	return k.ws.WriteMessage(websocket.TextMessage, m.Encode())
}
