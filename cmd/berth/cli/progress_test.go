package cli

import (
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestProgressLine(t *testing.T) {
	p := newProgress(io.Discard, 400<<20)
	content := p.file("world/\x1b[2Ja-very-long-name-of-a-region.mca", io.LimitReader(zeros{}, 100<<20))
	_, err := io.Copy(io.Discard, content)
	require.NoError(t, err)
	line := p.line(p.began.Add(10 * time.Second))
	require.Equal(t, "…ng-name-of-a-region.mca    100MiB [=====               ]  25%     10MiB/s 30s", line)
	p.total.Store(-1)
	require.Equal(t, "…ng-name-of-a-region.mca    100MiB     10MiB/s", p.line(p.began.Add(10*time.Second)))
	p.total.Store(1) // it has grown
	require.Contains(t, p.line(p.began), "100%")
	for _, total := range []int64{-1, 0, 1 << 50} {
		require.LessOrEqual(t, utf8.RuneCountInString(newProgress(io.Discard, total).line(time.Now())), 79)
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	var plain, shown strings.Builder
	p := newProgress(&plain, 1)
	p.close()
	require.Empty(t, plain.String())
	p = newProgress(&terminal{out: &shown}, 1)
	p.close()
	p.close()
	require.Equal(t, "\r\x1b[K", shown.String(), "the line is cleared")
}

// zeros is an endless source.
type zeros struct{}

// Read fills p.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
