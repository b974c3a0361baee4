package ws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/websocket"

	"berth/api/auth"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// commandReader reads and executes the messages of a socket's client.
type commandReader struct{ socket *socket }

// clientMessage is a message from a client. Container is required on the socket of
// the node, and ignored on that of a container.
type clientMessage struct {
	Event     string  `json:"event"`
	Data      *string `json:"data"` // nil: absent
	Container string  `json:"container"`
}

// errMessage is the answer to a message that is not a JSON object.
var errMessage = v1.Errorf(v1.InvalidRequest, "Message must be a JSON object with event and data")

// errNoContainer is the answer to a message on the socket of the node that names no
// container.
var errNoContainer = v1.Errorf(v1.InvalidRequest, "Message must name a container")

// parseMessage parses one message, or returns an error that names the field.
func parseMessage(raw []byte) (m clientMessage, err error) {
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return m, errMessage
	}
	var wrong *json.UnmarshalTypeError
	err = json.Unmarshal(raw, &m)
	switch {
	case errors.As(err, &wrong):
		return m, v1.Errorf(v1.InvalidRequest, "%s: must be a string", wrong.Field)
	case err != nil:
		return m, errMessage
	}
	return m, nil
}

// data returns the data of a message, or an error if it is absent. It may be empty.
func (m clientMessage) data() (string, error) {
	if m.Data == nil {
		return "", v1.Errorf(v1.InvalidRequest, "data: is required")
	}
	return *m.Data, nil
}

// read executes the client's messages until the connection ends.
func (r commandReader) read(ctx context.Context) {
	r.socket.ws.SetReadLimit(readLimit)
	alive := func(string) error { return r.socket.ws.SetReadDeadline(time.Now().Add(pongWait)) }
	r.socket.ws.SetPongHandler(alive)
	for {
		_ = alive("")
		_, raw, err := r.socket.ws.ReadMessage()
		if err != nil {
			r.stopRead(err)
			return
		}
		if answer := r.handle(ctx, raw); answer != nil && !r.answer(ctx, answer) {
			return
		}
	}
}

func (r commandReader) stopRead(err error) {
	if errors.Is(err, websocket.ErrReadLimit) {
		r.socket.stop(websocket.CloseMessageTooBig, "message is too big")
	}
	r.socket.stop(websocket.CloseNormalClosure, "")
}

// outgoing sends the answer to a message. Only the goroutine that writes calls it.
type outgoing func() error

// answer passes an answer to the writing goroutine, and waits until the previous
// one is sent, so that a client cannot queue answers that it does not read.
func (r commandReader) answer(ctx context.Context, send outgoing) bool {
	select {
	case r.socket.answers <- send:
		return true
	case <-r.socket.ended:
	case <-ctx.Done():
	}
	return false
}

// handle executes one message and returns the answer, or nil if there is none.
func (r commandReader) handle(ctx context.Context, raw []byte) outgoing {
	m, err := parseMessage(raw)
	if err != nil {
		return r.reply(r.socket.container, err.Error())
	}
	if r.socket.container != "" {
		m.Container = r.socket.container
	}
	answer, err := r.execute(ctx, m)
	if err != nil {
		text, log := r.socket.sockets.Refusal(err)
		if log {
			r.socket.log.Error("WebSocket message failed", "event", m.Event, "err", err)
		}
		return r.reply(m.Container, text)
	}
	return answer
}

func (r commandReader) execute(ctx context.Context, m clientMessage) (outgoing, error) {
	switch m.Event {
	case "send_command", "power":
		return nil, r.change(ctx, m)
	}
	if _, err := r.admit(m.Container); err != nil {
		return nil, err
	}
	switch m.Event {
	case "request_logs":
		return r.logs(ctx, m)
	case "request_stats":
		return r.stats(ctx, m)
	case "resize":
		return nil, r.resize(ctx, m)
	}
	return nil, v1.Errorf(v1.InvalidRequest, "Unknown event: must be send_command, power, request_logs, request_stats or resize")
}

// change executes a message that may change something: it counts as a request, and
// has an entry in the audit log.
func (r commandReader) change(ctx context.Context, m clientMessage) error {
	if err := r.socket.sockets.Pace(ctx, r.socket.caller); err != nil {
		return err
	}
	request := store.NewRequest(r.socket.sockets.Store, r.socket.request.Actor, v1.Audit{
		Action: m.action(), Object: m.Container, Container: m.Container, RequestID: r.socket.request.ID})
	request.Check = func(tx *store.Tx) error {
		_, err := r.verify(tx, m.Container)
		return err
	}
	caller, err := r.admit(m.Container)
	switch {
	case err != nil:
	case m.Event == "power":
		err = r.power(caller, request, m)
	default:
		err = r.command(ctx, caller, m)
	}
	return r.socket.sockets.Finish(request, r.socket.caller, err)
}

// action returns the action of a message in the audit log: that of the same request
// over HTTP.
func (m clientMessage) action() string {
	if m.Event == "send_command" {
		return "container.command"
	}
	if m.Data != nil && slices.Contains([]string{"start", "stop", "kill", "restart"}, *m.Data) {
		return "container." + *m.Data
	}
	return "container.power"
}

// admit verifies that the socket's token is still valid and may access a
// container, and returns its principal.
func (r commandReader) admit(container string) (p auth.Principal, err error) {
	if container == "" {
		return p, errNoContainer
	}
	err = r.socket.sockets.Store.View(func(tx *store.Tx) error {
		p, err = r.verify(tx, container)
		return err
	})
	return p, err
}

func (r commandReader) verify(tx *store.Tx, container string) (p auth.Principal, err error) {
	if p, err = r.socket.caller.Verify(tx, r.socket.sockets.Settings.Current().Authorization); err != nil {
		r.socket.end(err)
		return p, err
	}
	if !p.CanAccess(container) || r.socket.check(tx, p) != nil {
		return p, v1.ErrContainerNotFound
	}
	return p, r.socket.sockets.Containers.Find(tx, container)
}

// reply returns an answer with a text from berth.
func (r commandReader) reply(container, text string) outgoing {
	return r.sending(stream.NewMessage(v1.EventMessage, r.named(container), text, time.Now()))
}

// sending returns the answer that sends one message.
func (r commandReader) sending(m stream.Message) outgoing {
	return func() error { return r.socket.send(m) }
}

// named returns the container that a message names, which is empty on the socket
// of a container.
func (r commandReader) named(container string) string {
	if r.socket.container != "" {
		return ""
	}
	return container
}

func (r commandReader) command(ctx context.Context, caller auth.Principal, m clientMessage) error {
	if !caller.HasScope(v1.ScopeConsole) {
		return auth.ErrScope
	}
	text, err := m.data()
	if err != nil {
		return err
	}
	return r.socket.sockets.Containers.Command(ctx, caller, m.Container, text)
}

func (r commandReader) power(caller auth.Principal, w store.Writer, m clientMessage) error {
	if !caller.HasScope(v1.ScopePower) {
		return auth.ErrScope
	}
	verb, err := m.data()
	if err != nil {
		return err
	}
	return r.socket.sockets.Containers.Power(w, caller, m.Container, verb)
}

func (r commandReader) logs(ctx context.Context, m clientMessage) (outgoing, error) {
	tail := DefaultTail
	if m.Data != nil && *m.Data != "" {
		n, err := strconv.ParseUint(*m.Data, 10, 31)
		if err != nil || n > MaxTail {
			return nil, v1.Errorf(v1.InvalidRequest, "data: must be a number between 0 and %d", MaxTail)
		}
		tail = int(n)
	}
	return func() error {
		waiting, cancel := context.WithTimeout(ctx, HistoryWait)
		defer cancel()
		history, err := r.socket.sockets.Hub.ReadHistory(waiting, m.Container, stream.HistoryQuery{Tail: tail})
		if err != nil {
			return err
		}
		return r.socket.sendHistory(ctx, r.named(m.Container), history)
	}, nil
}

func (r commandReader) stats(ctx context.Context, m clientMessage) (outgoing, error) {
	stats, err := r.socket.sockets.Containers.Stats(ctx, m.Container)
	return r.sending(stream.StatsMessage(r.named(m.Container), stats, time.Now())), err
}

// maxTerminal is the largest number of columns and of rows of a terminal.
const maxTerminal = 1000

// resize changes the size of the container's terminal, such as 120x40.
func (r commandReader) resize(ctx context.Context, m clientMessage) error {
	caller, err := r.admit(m.Container)
	if err != nil {
		return err
	}
	if !caller.HasScope(v1.ScopeConsole) {
		return auth.ErrScope
	}
	size, err := m.data()
	if err != nil {
		return err
	}
	left, right, _ := strings.Cut(size, "x")
	columns, errColumns := strconv.ParseUint(left, 10, 16)
	rows, errRows := strconv.ParseUint(right, 10, 16)
	if errors.Join(errColumns, errRows) != nil || min(columns, rows) < 1 || max(columns, rows) > maxTerminal {
		return v1.Errorf(v1.InvalidRequest, "data: must be columns and rows such as 120x40, each at most %d", maxTerminal)
	}
	return r.socket.sockets.Containers.Resize(ctx, m.Container, uint(columns), uint(rows))
}
