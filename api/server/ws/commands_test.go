package ws

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
	v1 "berth/api/v1"
)

func TestBadMessagesKeepTheSocketOpen(t *testing.T) {
	h := newHarness(t)
	c := h.dial("/ws/mc", configured.Reveal(), 1)
	node := h.dial("/ws", configured.Reveal(), 2)
	for text, want := range map[string]string{
		"":                                       "Message must be a JSON object with event and data",
		"[1]":                                    "Message must be a JSON object with event and data",
		`{"event":`:                              "Message must be a JSON object with event and data",
		`{"event":1}`:                            "event: must be a string",
		`{"event":"resize","data":"0x40"}`:       "data: must be columns and rows such as 120x40, each at most 1000",
		`{"event":"resize","data":"120"}`:        "data: must be columns and rows such as 120x40, each at most 1000",
		`{"event":"send_command"}`:               "data: is required",
		`{"event":"request_logs","data":"x"}`:    "data: must be a number between 0 and 10000",
		`{"event":"reboot","data":"x"}`:          "Unknown event: must be send_command, power, request_logs, request_stats or resize",
		`{"event":"request_logs","data":"1e99"}`: "data: must be a number between 0 and 10000",
	} {
		c.write(text)
		require.Equal(t, want, c.next().Data, text)
	}
	node.write(`{"event":"request_stats"}`)
	require.Equal(t, "Message must name a container", node.next().Data)
	require.Empty(t, h.containers.done)
	c.write(`{"event":"send_command","data":"say hi"}`)
	c.write(`{"event":"resize","data":"100x50"}`)
	c.write(`{"event":"request_logs","data":"0"}`)
	require.Equal(t, "logs", c.next().Event)
	require.Equal(t, []string{"mc say hi", "mc 100 50"}, h.containers.done)
	c.write(strings.Repeat(" ", readLimit+1))
	require.Equal(t, websocket.CloseMessageTooBig, c.closed().Code)
}

func TestMessagesNeedTheirScope(t *testing.T) {
	h := newHarness(t)
	c := h.dial("/ws/mc", h.mint(auth.Grant{Scopes: []v1.Scope{v1.ScopeRead}}), 1)
	for _, text := range []string{`{"event":"send_command","data":"x"}`, `{"event":"power","data":"kill"}`, `{"event":"resize","data":"100x50"}`} {
		c.write(text)
		require.Equal(t, "Token scope does not allow this operation", c.next().Data)
	}
	require.Empty(t, h.containers.done)
}

// TestGoneClientIsNotLogged: a message that waits for its turn when its client leaves is no failure.
func TestGoneClientIsNotLogged(t *testing.T) {
	h := newHarness(t)
	h.sockets.Pace = func(ctx context.Context, _ auth.Principal) error { return ctx.Err() }
	h.sockets.Refusal = func(err error) (string, bool) { return err.Error(), true }
	var log bytes.Buffer
	k := &socket{sockets: h.sockets, container: "mc", log: slog.New(slog.NewTextHandler(&log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Nil(t, k.handle(ctx, []byte(`{"event":"power","data":"start"}`)))
	require.Empty(t, log.String())
}
