package console

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

type tail []string

func (t tail) LastLines(_ context.Context, _, role string, n int, _ time.Time) (lines []v1.Line, err error) {
	if role != v1.ServerConsole || n != lastLines {
		return nil, nil
	}
	for _, text := range t {
		lines = append(lines, v1.Line{Data: []byte(text)})
	}
	return lines, nil
}

func TestLastLinesArePlain(t *testing.T) {
	lines, err := LastLines(t.Context(), tail{"\x1b[31mred\x1b[0m\r", "", "\x1b[2K", "a\tb\x07\x00", "bad \xff utf", "\u202eback"}, "mc", time.Time{})
	require.NoError(t, err)
	require.Equal(t, []string{"red", "a b", "bad  utf", "back"}, lines)
}
