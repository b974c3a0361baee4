package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/websocket"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

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

// readMessages executes the client's messages until the connection ends.
func (k *socket) readMessages(ctx context.Context) {
	defer k.recovered()
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
		if answer := k.handle(ctx, raw); answer != nil && !k.pass(ctx, answer) {
			return
		}
	}
}

func (k *socket) stopRead(err error) {
	if errors.Is(err, websocket.ErrReadLimit) {
		k.stop(websocket.CloseMessageTooBig, "message is too big")
	}
	k.stop(websocket.CloseNormalClosure, "")
}

// outgoing sends the answer to a message. Only the goroutine that writes calls it.
type outgoing func() error

// pass passes an answer to the writing goroutine, and waits until the previous
// one is sent, so that a client cannot queue answers that it does not read.
func (k *socket) pass(ctx context.Context, send outgoing) bool {
	select {
	case k.answers <- send:
		return true
	case <-k.ending.begun:
	case <-ctx.Done():
	}
	return false
}

// handle executes one message and returns the answer, or nil if there is none.
func (k *socket) handle(ctx context.Context, raw []byte) outgoing {
	m, err := parseMessage(raw)
	if err != nil {
		return k.reply(k.container, err.Error())
	}
	if k.container != "" {
		m.Container = k.container
	}
	answer, err := k.execute(ctx, m)
	if err != nil && ctx.Err() != nil {
		return nil // the client is gone, which is no failure: it could fill the log
	}
	if err != nil {
		text, log := refusal(err)
		if log {
			k.log.Error("WebSocket message failed", "event", m.Event, "err", err)
		}
		return k.reply(m.Container, text)
	}
	return answer
}

func (k *socket) execute(ctx context.Context, m clientMessage) (outgoing, error) {
	switch m.Event {
	case "send_command", "power":
		return nil, k.change(ctx, m)
	}
	if _, err := k.admit(m.Container); err != nil {
		return nil, err
	}
	switch m.Event {
	case "request_logs":
		return k.logs(ctx, m)
	case "request_stats":
		return k.stats(ctx, m)
	case "resize":
		return nil, k.resize(ctx, m)
	}
	return nil, v1.Errorf(v1.InvalidRequest, "Unknown event: must be send_command, power, request_logs, request_stats or resize")
}

// change executes a message that may change something: it counts as a request, and
// has an entry in the audit log.
func (k *socket) change(ctx context.Context, m clientMessage) error {
	check := func() error {
		_, err := k.admit(m.Container)
		return err
	}
	if err := k.sockets.auditor.pace.Wait(ctx, k.caller.Tenant(), check); err != nil {
		return err
	}
	request := store.NewRequest(k.sockets.store, k.actor, v1.Audit{
		Action: m.action(), Object: m.Container, Container: m.Container, RequestID: k.request,
		Tenant: k.caller.Tenant()})
	request.Check = func(tx *store.Tx) error {
		_, err := k.verify(tx, m.Container)
		return err
	}
	caller, err := k.admit(m.Container)
	switch {
	case err != nil:
	case m.Event == "power":
		err = k.power(caller, request, m)
	default:
		err = k.command(ctx, caller, m, check)
	}
	return k.sockets.auditor.finishMessage(request, k.caller, err)
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
func (k *socket) admit(container string) (p auth.Principal, err error) {
	if container == "" {
		return p, errNoContainer
	}
	return k.verify(k.sockets.store.Read(), container)
}

func (k *socket) verify(tx *store.Tx, container string) (p auth.Principal, err error) {
	if p, err = k.caller.Verify(tx, k.sockets.settings.Current().Authorization); err != nil {
		k.end(err)
		return p, err
	}
	if !p.CanAccess(container) || k.check(tx, p) != nil {
		return p, v1.ErrContainerNotFound
	}
	return p, k.sockets.processes.find(tx, container)
}

// reply returns an answer with a text from berth.
func (k *socket) reply(container, text string) outgoing {
	return k.sending(stream.NewMessage(v1.EventMessage, k.named(container), text, time.Now()))
}

// sending returns the answer that sends one message.
func (k *socket) sending(m stream.Message) outgoing {
	return func() error { return k.send(m) }
}

// named returns the container that a message names, which is empty on the socket
// of a container.
func (k *socket) named(container string) string {
	if k.container != "" {
		return ""
	}
	return container
}

func (k *socket) command(ctx context.Context, caller auth.Principal, m clientMessage, check func() error) error {
	if !caller.HasScope(v1.ScopeConsole) {
		return auth.ErrScope
	}
	text, err := m.data()
	if err != nil {
		return err
	}
	return k.sockets.processes.command(ctx, caller, m.Container, text, check)
}

func (k *socket) power(caller auth.Principal, w store.Writer, m clientMessage) error {
	if !caller.HasScope(v1.ScopePower) {
		return auth.ErrScope
	}
	verb, err := m.data()
	if err != nil {
		return err
	}
	return k.sockets.processes.power(w, caller, m.Container, verb)
}

func (k *socket) logs(ctx context.Context, m clientMessage) (outgoing, error) {
	tail := defaultTail
	if m.Data != nil && *m.Data != "" {
		n, err := strconv.ParseUint(*m.Data, 10, 31)
		if err != nil || n > maxTail {
			return nil, v1.Errorf(v1.InvalidRequest, "data: must be a number between 0 and %d", maxTail)
		}
		tail = int(n)
	}
	return func() error {
		return k.sendHistory(ctx, k.named(m.Container), func() (stream.History, error) {
			return k.sockets.hub.ReadHistory(m.Container, stream.HistoryQuery{Tail: tail})
		})
	}, nil
}

func (k *socket) stats(ctx context.Context, m clientMessage) (outgoing, error) {
	stats, err := k.sockets.processes.stats(ctx, m.Container)
	return k.sending(stream.StatsMessage(k.named(m.Container), stats, time.Now())), err
}

// maxTerminal is the largest number of columns and of rows of a terminal.
const maxTerminal = 1000

// resize changes the size of the container's terminal, such as 120x40.
func (k *socket) resize(ctx context.Context, m clientMessage) error {
	caller, err := k.admit(m.Container)
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
	return k.sockets.processes.resize(ctx, m.Container, uint(columns), uint(rows), func() error {
		_, err := k.admit(m.Container)
		return err
	})
}

// Limits on console history.
const (
	defaultTail = 150              // console lines, if the client names no number
	maxTail     = 10_000           // console lines
	historyWait = 10 * time.Second // to open it
	historyTime = 2 * time.Minute  // for the client to receive it
)

// sendHistory sends the console history that read returns as one logs message, which names the container unless it is
// empty. It is bounded as an answer is: by limit.Histories while it is made, and by limit.Answers until it is sent.
func (k *socket) sendHistory(ctx context.Context, container string, read func() (stream.History, error)) error {
	text, leave, err := k.readHistory(ctx, container, read)
	if err != nil {
		return err
	}
	defer leave()
	return k.sendText(text, historyTime)
}

// readHistory returns the message, and what frees its memory.
func (k *socket) readHistory(ctx context.Context, container string, read func() (stream.History, error)) (
	text []byte, leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	made, err := enter(ctx, limit.Claim{Tenant: k.caller.Tenant(), Object: cmp.Or(k.container, container)}, k.sockets.history)
	if err != nil {
		return nil, nil, stream.ErrBusy
	}
	defer made()
	history, err := read()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errInternal, err)
	}
	text = stream.LogsMessage(container, history, time.Now()).Encode()
	leave, err = k.sockets.front.Hold(k.caller.Tenant(), len(text))
	return text, leave, err
}
