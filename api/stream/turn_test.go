package stream

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestNodeWideListenerHasItsOwnTurn: the readers of a container delay no node-wide listener.
func TestNodeWideListenerHasItsOwnTurn(t *testing.T) {
	h := New(t.TempDir(), Options{})
	defer h.Close()
	l, err := h.Listen("")
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, h.Append("mc", v1.ServerConsole, []v1.Line{{Time: time.Now(), Data: []byte("line")}}))
	c, err := h.console("mc")
	require.NoError(t, err)
	c.reading <- struct{}{} // somebody reads
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	list, err := l.Take(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
}
