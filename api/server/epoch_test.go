package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestSinceOfAnotherEpochReadsAnew(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	gap := object{"event": "gap", "data": "1"}
	c := h.open("/ws/mc?tail=0&since=2&epoch=another")
	require.Equal(t, gap, c.next())
	require.Equal(t, state(v1.Installing, 1), c.next())
	require.Equal(t, state(v1.Ready, 2), c.next())
	c = h.open("/ws/mc?tail=0&since=1&epoch=" + h.store.History.Epoch())
	require.Equal(t, state(v1.Ready, 2), c.next())

	for epoch, count := range map[string]int{"another": 2, "": 0, h.store.History.Epoch(): 0} {
		list := h.must("GET", "/events?since=2&epoch="+epoch, nil).json
		require.Len(t, list["events"], count, epoch)
		require.Equal(t, h.store.History.Epoch(), list["epoch"])
	}
	require.Contains(t, h.must("GET", "/events", nil).raw, `{"seq":1,"epoch":"`+h.store.History.Epoch()+`"`)
}
