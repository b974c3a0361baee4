package ws

import (
	"context"
	"fmt"
	"log/slog"
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
// second one reads the client's messages, and a third one fetches from the hub.
type socket struct {
	sockets   *Sockets
	request   Request
	caller    auth.Principal
	container string // internal_id; empty: all containers of the node
	since     uint64 // seq of the last replayed transition
	log       *slog.Logger

	ws       *websocket.Conn
	done     func() // ends the session
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
	k.ws = ws
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
	others.Go(func() { commandReader{k}.read(ctx) })
	if err := (snapshot{k}).deliver(ctx); err != nil {
		k.stopFor(err)
		k.sendClose()
		return
	}
	batches, done := make(chan []stream.Message), make(chan struct{})
	others.Go(func() { k.fetch(ctx, batches, done) })
	k.stopFor(k.write(batches, done))
	k.sendClose()
}

// fetch sends batches from the hub to write. A batch is valid until write reports
// on done that it has sent it.
func (k *socket) fetch(ctx context.Context, batches chan<- []stream.Message, done <-chan struct{}) {
	for {
		batch, err := k.listener.Next(ctx)
		if err != nil {
			k.stopFor(err)
			return
		}
		select {
		case batches <- batch:
		case <-ctx.Done():
			return
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// write sends batches, answers and pings until the socket stops or the connection
// breaks.
func (k *socket) write(batches <-chan []stream.Message, done chan<- struct{}) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-k.ended:
			return nil
		case batch := <-batches:
			err = k.sendAll(batch)
			done <- struct{}{}
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

func (k *socket) sendAll(batch []stream.Message) error {
	for _, m := range batch {
		message := m.JSON
		if m.Transition != nil && k.caller.Restricted() {
			message = encodeFor(k, *m.Transition)
		}
		if err := k.send(message); err != nil {
			return err
		}
	}
	return nil
}

// encodeFor returns the JSON of a transition as the viewer of a socket sees it.
func encodeFor(k *socket, e v1.Event) []byte {
	return stream.EncodeEvent(k.caller.Show(e), k.container == "")
}

func (k *socket) send(message []byte) error {
	select {
	case <-k.ended:
		return nil
	default:
	}
	if err := k.ws.SetWriteDeadline(time.Now().Add(socketWrite)); err != nil {
		return err
	}
	return k.ws.WriteMessage(websocket.TextMessage, message)
}
