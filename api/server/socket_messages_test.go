package server

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
	h.ready("mc")
	c, node := h.open("/ws/mc?tail=0"), h.open("/ws")
	require.Equal(t, "event", c.next()["event"])
	require.Equal(t, "event", node.next()["event"])
	write := func(c *client, text string) { require.NoError(t, c.WriteMessage(websocket.TextMessage, []byte(text))) }
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
		write(c, text)
		require.Equal(t, want, c.next()["data"], text)
	}
	write(node, `{"event":"request_stats"}`)
	require.Equal(t, "Message must name a container", node.next()["data"])
	require.Empty(t, h.console.all())
	write(c, `{"event":"send_command","data":"say hi"}`)
	write(c, `{"event":"resize","data":"100x50"}`)
	write(c, `{"event":"request_logs","data":"0"}`)
	require.Equal(t, "logs", c.next()["event"])
	require.Equal(t, []string{"mc say hi\n", "mc 100x50"}, h.console.all())
	write(c, strings.Repeat(" ", readLimit+1))
	code, _ := c.closed()
	require.Equal(t, websocket.CloseMessageTooBig, code)
}

// goneStats has no samples, for the client has left.
type goneStats struct{ *console }

func (goneStats) Stats(ctx context.Context, _ string) (v1.Stats, error) { return v1.Stats{}, ctx.Err() }

// TestGoneClientIsNotLogged: a message that waits when its client leaves is no failure.
func TestGoneClientIsNotLogged(t *testing.T) {
	h := newHarnessWith(t, func(d *Deps) { d.Stats = goneStats{} })
	h.ready("mc")
	var log bytes.Buffer
	k := newSocket(h)
	var err error
	k.caller, err = auth.Authenticate(h.store, h.settings.Current().Authorization, adminToken)
	require.NoError(t, err)
	k.log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	message := []byte(`{"event":"request_stats","container":"mc"}`)
	require.Nil(t, k.handle(ctx, message))
	require.Empty(t, log.String())
}
