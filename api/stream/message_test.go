package stream

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

var seeds = []string{"", "plain", "a\\n", "\x00\r\n\\", "\xff\xfe", "\xe2\x82", "€\"\t\x1b[0m", strings.Repeat("x\\", 40000)}

func FuzzEncodeIsJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := NewMessage(EventConsole, "mc", string(data), time.Unix(1, 2))
		m.Seq = 3
		b := m.Encode()
		var got struct {
			Event, Container, Data, Time string
			Seq                          uint64
		}
		require.True(t, utf8.Valid(b))
		require.NoError(t, json.Unmarshal(b, &got))
		theirs, err := json.Marshal(string(data))
		require.NoError(t, err)
		var want string
		require.NoError(t, json.Unmarshal(theirs, &want))
		require.Equal(t, want, got.Data)
		require.Equal(t, "1970-01-01T00:00:01.000000002Z", got.Time)
		require.EqualValues(t, 3, got.Seq)
	})
}

// TestEventsCarryTheirCause compares the JSON of a transition for sockets.
func TestEventsCarryTheirCause(t *testing.T) {
	code := 137
	e := v1.Event{Seq: 9, Epoch: "s-1", Time: time.Unix(0, 5), Container: "mc", Event: v1.EventState, From: v1.Running,
		Data: "exit", Reason: v1.ReasonOutOfMemory, ExitCode: &code}
	retry := time.Unix(10, 7)
	again := e
	again.RestartCount, again.NextRetryAt = 3, &retry
	require.JSONEq(t, `{"event":"event","container":"mc","data":"exit","from":"running","reason":"OutOfMemory","exit_code":137,
		"restart_count":3,"next_retry_at":"1970-01-01T00:00:10.000000007Z",
		"time":"1970-01-01T00:00:00.000000005Z","seq":9,"epoch":"s-1"}`, string(NodeMessage(&again).Encode()))
	require.JSONEq(t, `{"event":"event","container":"mc","data":"exit","from":"running","reason":"OutOfMemory","exit_code":137,
		"time":"1970-01-01T00:00:00.000000005Z","seq":9,"epoch":"s-1"}`, string(NodeMessage(&e).Encode()))
	require.JSONEq(t, `{"event":"pull","data":"running","pull":"p","volume":"v","time":"1970-01-01T00:00:00.000000005Z","seq":9}`,
		string(NodeMessage(&v1.Event{Seq: 9, Time: e.Time, Event: v1.EventPull, Data: "running", Pull: "p", Volume: "v"}).Encode()))
	require.JSONEq(t, `{"event":"event","data":"ready","time":"1970-01-01T00:00:00.000000005Z"}`,
		string(EventMessage(&v1.Event{Time: e.Time, Event: v1.EventState, Data: "ready"}).Encode()))
}

// FuzzPartialLinesAreOneText splits a text into partial lines: a listener receives
// the same text.
func FuzzPartialLinesAreOneText(f *testing.F) {
	f.Add([]byte("a€b😀c"), uint8(1))
	f.Add([]byte("€€€\xff\xe2\x82"), uint8(2))
	f.Add(bytes.Repeat([]byte("\x11€"), 3000), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		n := int(size%7) + 1
		var text, held []byte
		got := ""
		add := func(l v1.Line) {
			text, held = joined(held, l)
			got += string([]rune(string(text)))
		}
		for cut := data; ; cut = cut[n:] {
			if len(cut) <= n {
				add(v1.Line{Data: cut})
				break
			}
			add(v1.Line{Data: cut[:n], Partial: true})
		}
		require.Empty(t, held)
		require.Equal(t, string([]rune(string(data))), got)
	})
}
