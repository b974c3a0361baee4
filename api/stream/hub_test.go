package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// line returns the i-th line of a console, a millisecond after the one before.
func line(i int) v1.Line {
	return v1.Line{Time: epoch.Add(time.Duration(i) * time.Millisecond), Data: fmt.Appendf(nil, "line %d", i)}
}

func lines(from, to int) []v1.Line {
	var list []v1.Line
	for i := from; i < to; i++ {
		list = append(list, line(i))
	}
	return list
}

type message struct {
	Event, Container, Data string
	Time                   time.Time
	Seq                    uint64
	CPU                    float64 `json:"cpu_usage"`
}

func decode(t *testing.T, m stream.Message) message {
	t.Helper()
	var got message
	require.True(t, json.Valid(m.Encode()), "%q", m.Encode())
	require.NoError(t, json.Unmarshal(m.Encode(), &got))
	return got
}

// take waits until a listener has messages, and returns them.
func take(ctx context.Context, l *stream.Listener) ([]stream.Message, error) {
	for {
		if out, err := l.Take(ctx); len(out) > 0 || err != nil {
			return out, err
		}
		select {
		case <-l.Ready():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestListenerGetsHistoryThenLiveLines(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	_, err := h.Begin("mc", v1.ServerConsole, "c1")
	require.NoError(t, err)
	require.NoError(t, h.Append("mc", v1.ServerConsole, lines(0, 10)))
	l, err := h.Listen("mc")
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, h.Append("mc", v1.ServerConsole, lines(10, 12)))
	past, err := l.ReadHistory(3)
	require.NoError(t, err)
	require.Equal(t, numbered(7, 10), historyLines(past))
	out, err := take(t.Context(), l)
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.Equal(t, "line 10\nline 11\n", decode(t, out[0]).Data)
	require.Equal(t, line(11).Time, decode(t, out[0]).Time)
}

// A message about the node itself reaches only the node-wide listeners, once.
func TestEventOfTheNode(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	defer h.Close()
	all, err := h.Listen("")
	require.NoError(t, err)
	defer all.Close()
	one, err := h.Listen("mc")
	require.NoError(t, err)
	defer one.Close()
	h.Event(v1.Event{Seq: 1, Event: v1.EventMessage, Data: "of the node"})
	h.Event(v1.Event{Seq: 2, Event: v1.EventMessage, Data: "of mc", Container: "mc"})
	for l, want := range map[*stream.Listener][]string{all: {"of the node", "of mc"}, one: {"of mc"}} {
		out, err := take(t.Context(), l)
		require.NoError(t, err)
		var got []string
		for _, m := range out {
			got = append(got, decode(t, m).Data)
		}
		require.Equal(t, want, got)
	}
}
