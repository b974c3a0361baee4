package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

// pieces reads everything that next appends, piece by piece.
func pieces(t *testing.T, next func(context.Context, []byte) ([]byte, error)) string {
	t.Helper()
	var all []byte
	for {
		piece, err := next(t.Context(), nil)
		require.NoError(t, err)
		require.Less(t, len(piece), 20<<10, "a piece is bounded")
		if len(piece) == 0 {
			return string(all)
		}
		all = append(all, piece...)
	}
}

// TestHistoryIsWhatTailIs compares what is streamed with what is read at once.
func TestHistoryIsWhatTailIs(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{FileSize: 300 << 10, Files: 3})
	defer h.Close()
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1_000_000, 0).UTC()
	alphabet := []string{"a", "\x01", "\"", "\\", "\n", "\xff", "é", "€", "𝄞", " long text without anything special"}
	for range 400 {
		for _, role := range []string{v1.InstallConsole, v1.ServerConsole} {
			var text bytes.Buffer
			for range random.IntN(200) {
				text.WriteString(alphabet[random.IntN(len(alphabet))])
			}
			if random.IntN(50) == 0 {
				text.Write(bytes.Repeat([]byte{1}, 40<<10)) // longer than a record, and than a piece
			}
			now = now.Add(time.Second)
			require.NoError(t, h.Append("mc", role, []v1.Line{{Time: now, Data: text.Bytes()}}))
		}
	}
	for _, role := range []string{"", v1.InstallConsole, v1.ServerConsole} {
		for _, n := range []int{0, 1, 7, 100, 10_000} {
			want, err := h.Tail("mc", role, n, time.Time{})
			require.NoError(t, err)
			x, err := h.ReadHistory(t.Context(), "mc", role, n, time.Time{})
			require.NoError(t, err)
			var got []struct {
				Time time.Time
				Data string
			}
			require.NoError(t, json.Unmarshal([]byte("["+pieces(t, x.NextLines)+"]"), &got))
			x.Close()
			require.Len(t, got, len(want))
			var text bytes.Buffer
			for i, l := range want {
				require.Equal(t, l.Time, got[i].Time)
				require.Equal(t, string([]rune(string(l.Data))), got[i].Data, fmt.Sprint(role, n, i))
				fmt.Fprintf(&text, "%s\n", l.Data)
			}
			x, err = h.ReadHistory(t.Context(), "mc", role, n, time.Time{})
			require.NoError(t, err)
			var whole string
			require.NoError(t, json.Unmarshal([]byte(`"`+pieces(t, x.NextText)+`"`), &whole))
			x.Close()
			require.Equal(t, string([]rune(text.String())), whole)
		}
	}
}

// TestHistoryWaitsForItsTurn, and no longer than its request.
func TestHistoryWaitsForItsTurn(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	defer h.Close()
	var open []*stream.History
	for range 512 {
		x, err := h.ReadHistory(t.Context(), "mc", "", 1, time.Time{})
		require.NoError(t, err)
		open = append(open, x)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.ReadHistory(ctx, "mc", "", 1, time.Time{})
	require.ErrorIs(t, err, stream.ErrBusy)
	open[0].Close()
	x, err := h.ReadHistory(t.Context(), "mc", "", 1, time.Time{})
	require.NoError(t, err)
	x.Close()
}
