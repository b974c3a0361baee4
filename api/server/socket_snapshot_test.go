package server

import (
	"strconv"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// TestReplayOfEarlierContainer replays the transitions of an internal_id that had another
// owner before: a token of the present container does not receive the earlier ones, nor
// who caused them.
func TestReplayOfEarlierContainer(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	change := func(fn func(*store.Tx) error) { require.NoError(t, h.store.Update(fn)) }
	emit := func(text string) {
		change(func(tx *store.Tx) error {
			tx.Emit(v1.Event{Container: "mc", Event: v1.EventMessage, Data: text, Actor: v1.Actor{Name: text, Via: v1.ViaHTTP}})
			return nil
		})
	}
	emit("earlier")
	change(func(tx *store.Tx) error { return store.Containers.Purge(tx, "mc") })
	change(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", v1.ContainerSpec{}) })
	emit("present")
	replayed := func(token string) (list []any) {
		c, _, err := h.dialSocket("/ws/mc?since=0&token="+token, nil)
		require.NoError(t, err)
		for m := c.next(); m["event"] != v1.EventState; m = c.next() {
			list = append(list, m["data"])
		}
		return list
	}
	require.Equal(t, []any{"present"}, replayed(h.mint(object{"containers": []string{"mc"}})))
	require.Equal(t, []any{"earlier", "present"}, replayed(h.mint(object{})))
}

// TestTrimDuringReplay removes transitions between two pieces of a replay: the next one begins with a gap.
func TestTrimDuringReplay(t *testing.T) {
	h := newHarness(t)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		for range replayPiece + 100 {
			tx.Emit(v1.Event{Container: "mc", Event: v1.EventMessage})
		}
		return nil
	}))
	k := newSocket(h)
	k.container = "mc"
	list, more, err := k.nextTransitions(t.Context())
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, list, replayPiece)
	_, err = h.store.TrimEvents(time.Time{}, 40)
	require.NoError(t, err)
	list, more, err = k.nextTransitions(t.Context())
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, list, 41)
	require.Equal(t, stream.EventGap, list[0].Event)
	require.Equal(t, strconv.Itoa(replayPiece+61), *list[0].Data)
}

// TestContainerRemovedDuringConnect removes a container after its socket was upgraded: it ends as
// that of a container that is removed later.
func TestContainerRemovedDuringConnect(t *testing.T) {
	h := newHarness(t)
	k := newSocket(h)
	k.container = "gone"
	require.NoError(t, k.listen())
	defer k.listener.Close()
	k.stopFor(k.sendSnapshot(t.Context()))
	k.ending.abort.Stop()
	require.Equal(t, websocket.CloseNormalClosure, k.ending.code)
	require.Equal(t, "container is deleted", k.ending.reason)
}
