package journal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

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
		got, ok := parse(rec[:len(rec)-1])
		require.True(t, ok)
		require.True(t, got.Time.Equal(at))
		require.Equal(t, partial, got.Partial)
		require.True(t, bytes.Equal(data, got.Data))
	})
}

func FuzzParseAnyRecord(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte("2026-01-02T15:04:05.000000000Z F " + s))
	}
	f.Fuzz(func(t *testing.T, rec []byte) {
		l, ok := parse(bytes.Clone(rec))
		if ok && bytes.IndexByte(l.Data, '\\') < 0 && bytes.IndexByte(rec, '\\') < 0 {
			require.True(t, bytes.HasSuffix(rec, l.Data))
		}
	})
}

func TestAnyRecordFitsIntoABlock(t *testing.T) {
	l := v1.Line{Time: time.Unix(0, 0), Shown: time.Unix(1<<32, 0), Data: bytes.Repeat([]byte("\n"), v1.MaxLine), Message: true}
	require.Less(t, len(appendRecord(nil, l)), blockSize)
}
