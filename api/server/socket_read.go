package server

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/fasthttp/websocket"

	"berth/api/intent"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// reading is the half of a socket that takes what its client sends.
type reading struct{ *socket }

// clientMessage is what a client may send. Container is for the socket of the
// node, where it is required.
type clientMessage struct {
	Event     string `json:"event"`
	Data      string `json:"data"`
	Container string `json:"container"`
}

// read takes the client's messages until the connection ends.
func (k reading) read(ctx context.Context) {
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

func (k reading) stopRead(err error) {
	if errors.Is(err, websocket.ErrReadLimit) {
		k.stop(websocket.CloseMessageTooBig, "message is too big")
	}
	k.stop(websocket.CloseNormalClosure, "")
}

// answer hands over a message for this client. It waits until the one before is
// sent, so that a client who asks faster than he reads waits for himself.
func (k reading) answer(ctx context.Context, message []byte) bool {
	select {
	case k.answers <- message:
		return true
	case <-k.ended:
	case <-ctx.Done():
	}
	return false
}

// handle carries out one message, and returns the answer to it; nil is none.
func (k reading) handle(ctx context.Context, raw []byte) []byte {
	var m clientMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return k.say(k.container, "Message must be a JSON object with event and data")
	}
	if k.container != "" {
		m.Container = k.container
	} else if m.Container == "" {
		return k.say("", "Message must name a container")
	}
	answer, err := k.carryOut(ctx, m)
	if err != nil {
		told, known := refusal(err)
		if !known {
			k.log.Error("socket message failed", "event", m.Event, "err", err)
		}
		return k.say(m.Container, told.Message)
	}
	return answer
}

func (k reading) carryOut(ctx context.Context, m clientMessage) ([]byte, error) {
	if !k.caller.Sees(m.Container) || !intent.IsContainerID(m.Container) {
		return nil, v1.ErrContainerNotFound
	}
	err := k.server.store.View(func(tx *store.Tx) error {
		_, err := intent.FindContainer(tx, m.Container)
		return err
	})
	if err != nil {
		return nil, err
	}
	switch m.Event {
	case "send_command":
		return nil, k.command(ctx, m)
	case "power":
		return nil, k.power(m)
	case "request_logs":
		return k.logs(m)
	case "request_stats":
		return k.stats(ctx, m)
	}
	return nil, v1.Errorf(v1.InvalidRequest, "Unknown event: must be send_command, power, request_logs or request_stats")
}

// say is a message of berth's to this client.
func (k reading) say(container, text string) []byte {
	return stream.Encode(v1.EventMessage, k.named(container), []byte(text), time.Now(), 0)
}

// named is the container that a message names: on the node's socket only.
func (k reading) named(container string) string {
	if k.container != "" {
		return ""
	}
	return container
}

// commandTimeout bounds how long a line may take to reach its container.
const commandTimeout = 10 * time.Second

func (k reading) command(ctx context.Context, m clientMessage) error {
	if !k.caller.May(v1.ScopeConsole) {
		return intent.ErrScope
	}
	if k.server.deps.Console == nil {
		return errUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return k.server.deps.Console.Send(ctx, m.Container, line(m.Data))
}

func (k reading) power(m clientMessage) error {
	if !k.caller.May(v1.ScopePower) {
		return intent.ErrScope
	}
	switch m.Data {
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

func (k reading) logs(m clientMessage) ([]byte, error) {
	tail := defaultTail
	if m.Data != "" {
		n, err := strconv.ParseUint(m.Data, 10, 31)
		if err != nil || n > maxTail {
			return nil, v1.Errorf(v1.InvalidRequest, "data: must be a number between 0 and %d", maxTail)
		}
		tail = int(n)
	}
	lines, err := k.server.hub.Tail(m.Container, "", tail, time.Time{})
	return encodeLogs(k.named(m.Container), lines), err
}

func (k reading) stats(ctx context.Context, m clientMessage) ([]byte, error) {
	if k.server.deps.Stats == nil {
		return nil, errUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	stats, err := k.server.deps.Stats.Stats(ctx, m.Container)
	return stream.EncodeStats(k.named(m.Container), stats, time.Now()), err
}
