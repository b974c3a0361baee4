package stream_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

// BenchmarkFanOut has clients that count the bytes they are given; an operation
// is a line that was delivered to all of them. One line at a time is the
// interactive case, a hundred a flood.
func BenchmarkFanOut(b *testing.B) {
	for _, clients := range []int{0, 1, 50, 100} {
		for _, batch := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("clients=%d/batch=%d", clients, batch), func(b *testing.B) {
				fanOut(b, clients, batch)
			})
		}
	}
}

func fanOut(b *testing.B, clients, batch int) {
	h := stream.New(b.TempDir(), stream.Options{FileSize: 256 << 20})
	data := make([]byte, 100)
	for i := range data {
		data[i] = byte('a' + i%26)
	}
	list := make([]v1.Line, batch)
	for i := range list {
		list[i] = v1.Line{Time: epoch, Data: data}
	}
	rounds := b.N / batch
	var done sync.WaitGroup
	for range clients {
		l, err := h.Listen("mc")
		require.NoError(b, err)
		defer l.Close()
		done.Go(func() { count(b, l, rounds*batch*(len(data)+2)) })
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range rounds {
		if err := h.Append("mc", server, list); err != nil {
			b.Error(err)
		}
	}
	done.Wait()
	b.ReportMetric(float64(b.N)*float64(max(clients, 1))/b.Elapsed().Seconds(), "deliveries/s")
}

// count reads until it was given a number of bytes of output.
func count(b *testing.B, l *stream.Listener, left int) {
	head, foot := []byte(`{"event":"console","data":"`), []byte(`","time":"`)
	for left > 0 {
		out, err := take(b.Context(), l)
		if err != nil {
			b.Error(err)
			return
		}
		for _, m := range out {
			if m.Event != stream.EventConsole {
				b.Errorf("%s", m.Encode())
				return
			}
			left -= bytes.LastIndex(m.Encode(), foot) - len(head)
		}
	}
}
