package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/fasthttp/websocket"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// commandReader reads and executes the messages of a socket's client.
type commandReader struct{ *socket }

// clientMessage is a message from a client. Container is required on the socket of
// the node, and ignored on that of a container.
type clientMessage struct {
	Event     string  `json:"event"`
	Data      *string `json:"data"` // nil: absent
	Container string  `json:"container"`
}

// errMessage is the answer to a message that is not a JSON object.
var errMessage = v1.Errorf(v1.InvalidRequest, "Message must be a JSON object with event and data")

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
func (k commandReader) read(ctx context.Context) {
	k.ws.SetReadLimit(readLimit)
	alive := func(string) error { return k.ws.SetReadDeadline(time.Now().Add(pongWait)) }
	k.ws.SetPongHandler(alive)
	for {
		_ = alive("")
		_, raw, err := k.ws.ReadMessage()
		if err != nil {
			k.stopRead(err)
			return
		}
		if answer := k.handle(ctx, raw); answer != nil && !k.answer(ctx, answer) {
			return
		}
	}
}

func (k commandReader) stopRead(err error) {
	if errors.Is(err, websocket.ErrReadLimit) {
		k.stop(websocket.CloseMessageTooBig, "message is too big")
	}
	k.stop(websocket.CloseNormalClosure, "")
}

// outgoing sends the answer to a message. Only the goroutine that writes calls it.
type outgoing func() error

// answer passes an answer to the writing goroutine, and waits until the previous
// one is sent, so that a client cannot queue answers that it does not read.
func (k commandReader) answer(ctx context.Context, send outgoing) bool {
	select {
	case k.answers <- send:
		return true
	case <-k.ended:
	case <-ctx.Done():
	}
	return false
}

// handle executes one message and returns the answer, or nil if there is none.
func (k commandReader) handle(ctx context.Context, raw []byte) outgoing {
	m, err := parseMessage(raw)
	if err != nil {
		return k.reply(k.container, err.Error())
	}
	if k.container != "" {
		m.Container = k.container
	} else if m.Container == "" {
		return k.reply("", "Message must name a container")
	}
	answer, err := k.execute(ctx, m)
	if err != nil {
		refused, known := refusal(err)
		if !known {
			k.log.Error("WebSocket message failed", "event", m.Event, "err", err)
		}
		return k.reply(m.Container, refused.Message)
	}
	return answer
}

func (k commandReader) execute(ctx context.Context, m clientMessage) (outgoing, error) {
	caller, err := k.admit(m.Container)
	if err != nil {
		return nil, err
	}
	switch m.Event {
	case "send_command":
		return nil, k.command(ctx, caller, m)
	case "power":
		return nil, k.power(caller, m)
	case "request_logs":
		return k.logs(ctx, m)
	case "request_stats":
		return k.stats(ctx, m)
	}
	return nil, v1.Errorf(v1.InvalidRequest, "Unknown event: must be send_command, power, request_logs or request_stats")
}

// admit verifies that the socket's token is still valid and may access a
// container, and returns its principal.
func (k commandReader) admit(container string) (p auth.Principal, err error) {
	if !intent.IsContainerID(container) {
		return p, v1.ErrContainerNotFound
	}
	err = k.server.store.View(func(tx *store.Tx) error {
		if p, err = k.caller.Verify(tx, k.server.settings.Current().Authorization); err != nil {
			k.end(err)
			return err
		}
		if !p.CanAccess(container) || k.check(tx, p) != nil {
			return v1.ErrContainerNotFound
		}
		_, err := intent.FindContainer(tx, container)
		return err
	})
	return p, err
}

// reply returns an answer with a text from berth.
func (k commandReader) reply(container, text string) outgoing {
	return k.sending(stream.Encode(v1.EventMessage, k.named(container), []byte(text), time.Now(), 0))
}

// sending returns the answer that sends one message.
func (k commandReader) sending(message []byte) outgoing {
	return func() error { return k.send(message) }
}

// named returns the container that a message names, which is empty on the socket
// of a container.
func (k commandReader) named(container string) string {
	if k.container != "" {
		return ""
	}
	return container
}

// commandTimeout bounds how long it may take to send a command to a container or
// to read its stats.
const commandTimeout = 10 * time.Second

func (k commandReader) command(ctx context.Context, caller auth.Principal, m clientMessage) error {
	if !caller.HasScope(v1.ScopeConsole) {
		return auth.ErrScope
	}
	text, err := m.data()
	if err != nil {
		return err
	}
	if k.server.deps.Console == nil {
		return errUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return k.server.deps.Console.Send(ctx, m.Container, line(text))
}

func (k commandReader) power(caller auth.Principal, m clientMessage) error {
	if !caller.HasScope(v1.ScopePower) {
		return auth.ErrScope
	}
	verb, err := m.data()
	if err != nil {
		return err
	}
	switch verb {
	case "start":
		return intent.StartContainer(k.server.store, m.Container)
	case "stop":
		return intent.StopContainer(k.server.store, m.Container)
	case "kill":
		return intent.KillContainer(k.server.store, m.Container)
	case "restart":
		return intent.RestartContainer(k.server.store, m.Container)
	}
	return v1.Errorf(v1.InvalidRequest, "data: must be start, stop, kill or restart")
}

func (k commandReader) logs(ctx context.Context, m clientMessage) (outgoing, error) {
	tail := defaultTail
	if m.Data != nil && *m.Data != "" {
		n, err := strconv.ParseUint(*m.Data, 10, 31)
		if err != nil || n > maxTail {
			return nil, v1.Errorf(v1.InvalidRequest, "data: must be a number between 0 and %d", maxTail)
		}
		tail = int(n)
	}
	return func() error {
		waiting, cancel := context.WithTimeout(ctx, historyWait)
		defer cancel()
		history, err := k.server.hub.ReadHistory(waiting, m.Container, "", tail, time.Time{})
		if err != nil {
			return historyError(err)
		}
		return k.sendHistory(ctx, k.named(m.Container), history)
	}, nil
}

func (k commandReader) stats(ctx context.Context, m clientMessage) (outgoing, error) {
	if k.server.deps.Stats == nil {
		return nil, errUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	stats, err := k.server.deps.Stats.Stats(ctx, m.Container)
	return k.sending(stream.EncodeStats(k.named(m.Container), stats, time.Now())), err
}
