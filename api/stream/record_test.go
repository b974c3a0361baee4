package stream

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var seeds = []string{"", "plain", "a\\n", "\x00\r\n\\", "\xff\xfe", "\xe2\x82", "€\"\t\x1b[0m", strings.Repeat("x\\", 40000)}

func FuzzRecordKeepsAnyBytes(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), int64(1_700_000_000_123_456_789), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, ns int64, partial bool) {
		at := time.Unix(0, ns).UTC()
		if at.Year() < 0 || at.Year() > 9999 {
			return
		}
		want := v1.Line{Time: at, Data: data, Partial: partial}
		rec := appendRecord(nil, want)
		require.Equal(t, len(rec)-1, bytes.IndexByte(rec, '\n'))
		got, ok := parseRecord(rec[:len(rec)-1])
		require.True(t, ok)
		require.True(t, got.Time.Equal(at))
		require.Equal(t, partial, got.Partial)
		require.True(t, bytes.Equal(data, got.Data))
	})
}

func FuzzParseRecordTakesAnything(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte("2026-01-02T15:04:05.000000000Z F " + s))
	}
	f.Fuzz(func(t *testing.T, rec []byte) {
		l, ok := parseRecord(bytes.Clone(rec))
		if ok && bytes.IndexByte(l.Data, '\\') < 0 && bytes.IndexByte(rec, '\\') < 0 {
			require.True(t, bytes.HasSuffix(rec, l.Data))
		}
	})
}

func FuzzEncodeIsJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := Encode(EventConsole, "mc", data, time.Unix(1, 2), 3)
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

// FuzzPiecesAreWhatTheLineWas cuts a text into partial lines: a listener gets
// the text as if it had never been cut.
func FuzzPiecesAreWhatTheLineWas(f *testing.F) {
	f.Add([]byte("a€b😀c"), uint8(1))
	f.Add([]byte("€€€\xff\xe2\x82"), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		n := int(size%7) + 1
		b := builder{text: true}
		for cut := data; ; cut = cut[n:] {
			if len(cut) <= n {
				b.add(v1.Line{Data: cut})
				break
			}
			b.add(v1.Line{Data: cut[:n], Partial: true})
		}
		b.close()
		require.Len(t, b.done, 1)
		require.Empty(t, b.held)
		var got, want string
		require.NoError(t, json.Unmarshal([]byte(`"`+string(b.done[0].text)+`"`), &got))
		theirs, err := json.Marshal(string(data) + "\n")
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(theirs, &want))
		require.Equal(t, want, got)
	})
}

func TestLongLinesAreSplit(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 10000)
	var parts []v1.Line
	split(v1.Line{Data: data}, func(l v1.Line) { parts = append(parts, l) })
	require.Greater(t, len(parts), 1)
	for _, p := range parts {
		require.LessOrEqual(t, len(appendRecord(nil, p)), blockSize)
	}
	lines := join(parts)
	require.Len(t, lines, 1)
	require.Equal(t, data, lines[0].Data)
	require.False(t, lines[0].Partial)
}
