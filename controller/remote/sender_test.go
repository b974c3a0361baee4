package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

func TestTransitionsAreSentInOrder(t *testing.T) {
	live(t, func(w *world) {
		w.emit(250)
		w.pass(time.Millisecond)
		w.emit(3)
		w.pass(time.Millisecond)
		require.Equal(t, upTo(253), w.panel.seqs())
		first := w.panel.requests()[0]
		require.Equal(t, "host-1", first.Node)
		require.Len(t, first.Events, maxBatch)
		require.Equal(t, "Bearer "+secret, first.token)
		e := first.Events[1]
		require.Equal(t, message{Event: v1.Event{Time: e.Time, Container: "c1", Event: "event", Data: "running"}, Epoch: w.store.Incarnations.Epoch(), Seq: 2}, e)
		require.False(t, e.Time.IsZero())
		require.Zero(t, w.metric("berth_remote_lag_events", ""))
	})
}

func TestFlakyPanelAndRestartsLoseNothing(t *testing.T) {
	live(t, func(w *world) {
		dice, moods := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
		w.panel.set(func(request) (int, error) {
			switch moods.IntN(4) {
			case 0:
				return 503, nil
			case 1:
				return 200, errors.New("the answer was lost") // after the panel accepted it
			case 2:
				return 0, errors.New("connection reset")
			}
			return 200, nil
		})
		for range 30 {
			w.emit(40)
			w.pass(time.Duration(dice.IntN(5000)) * time.Millisecond)
			if dice.IntN(3) == 0 {
				w.stop()
				w.start()
			}
		}
		w.pass(time.Hour)
		got := w.panel.seqs()
		require.True(t, inOrder(got), "%v", got)
		require.Greater(t, len(got), 1200, "some were sent twice")
		slices.Sort(got)
		require.Equal(t, upTo(1200), slices.Compact(got))
	})
}

// inOrder reports whether each seq first arrives after all smaller ones.
func inOrder(seqs []uint64) bool {
	seen := uint64(0)
	for _, s := range seqs {
		if s > seen+1 {
			return false
		}
		seen = max(seen, s)
	}
	return true
}

func TestPanelIsUnreachableForDays(t *testing.T) {
	live(t, func(w *world) {
		w.panel.set(away)
		for range 72 {
			w.emit(10)
			w.pass(time.Hour)
		}
		require.Equal(t, 720.0, w.metric("berth_remote_lag_events", ""))
		tries := len(w.panel.requests())
		require.Greater(t, tries, 500)
		require.Less(t, tries, 72*60/4, "five minutes apart, whatever happens meanwhile")
		require.Equal(t, float64(tries), w.metric("berth_remote_failures_total", "unreachable"))
		w.panel.set(always(200))
		w.pass(maxWait * 5 / 4)
		require.Equal(t, upTo(720), w.panel.seqs())
		require.Zero(t, w.metric("berth_remote_lag_events", ""))
		require.Contains(t, w.log.String(), "accepts transitions again")
	})
}

func TestChangedSettingsApply(t *testing.T) {
	live(t, func(w *world) {
		w.panel.set(func(r request) (int, error) {
			if r.url != "https://other.example/" || r.token != "Bearer other" {
				return 500, nil
			}
			return 200, nil
		})
		w.emit(5)
		w.pass(time.Hour)
		require.Empty(t, w.panel.seqs())
		w.change(func(r *v1.RemoteConfig) { r.URL, r.Token, r.Node = "https://other.example/", "other", "named" })
		w.pass(settingsInterval + time.Millisecond)
		require.Equal(t, upTo(5), w.panel.seqs(), "the backoff of the old panel does not delay the new one")
		require.Equal(t, "named", w.panel.requests()[len(w.panel.requests())-1].Node)

		w.change(func(r *v1.RemoteConfig) { r.Enabled = false })
		w.pass(settingsInterval)
		tries := len(w.panel.requests())
		w.emit(5)
		w.pass(time.Hour)
		require.Len(t, w.panel.requests(), tries)
		require.Zero(t, w.metric("berth_remote_lag_events", ""), "0 while disabled")
		w.change(func(r *v1.RemoteConfig) { r.Enabled = true })
		w.pass(settingsInterval)
		require.Equal(t, upTo(10), w.panel.seqs(), "transitions stored meanwhile are sent")
	})
}

func TestGapIsSentBeforeTheRest(t *testing.T) {
	live(t, func(w *world) {
		w.emit(20)
		w.pass(time.Second)
		w.panel.set(away)
		w.emit(3000)
		w.pass(time.Hour)
		_, err := w.store.TrimEvents(time.Time{}, 50)
		require.NoError(t, err)
		w.panel.set(always(200))
		w.pass(time.Hour)
		got := w.panel.taken[20:]
		require.Equal(t, message{Event: v1.Event{Time: got[0].Time, Event: "gap", Data: "2971"}, Epoch: w.store.Incarnations.Epoch()}, got[0])
		require.Equal(t, uint64(2971), got[1].Seq)
		require.Equal(t, uint64(3020), got[len(got)-1].Seq)
		require.Len(t, got, 51)
		require.Equal(t, 2950.0, w.metric("berth_remote_lost_total", ""))
	})
}

func TestGapWithEmptyLog(t *testing.T) {
	live(t, func(w *world) {
		w.panel.set(away)
		w.emit(3000)
		w.pass(time.Hour)
		_, err := w.store.TrimEvents(time.Now().Add(time.Hour), 0)
		require.NoError(t, err)
		w.panel.set(always(200))
		w.pass(time.Hour)
		require.Equal(t, "3001", w.panel.taken[0].Data)
		require.Len(t, w.panel.taken, 1)
		w.emit(1)
		w.pass(time.Second)
		require.Equal(t, uint64(3001), w.panel.taken[1].Seq)
	})
}

func TestRunEndsWithContextAndStore(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	settings := func() v1.Config { return v1.Config{Remote: v1.RemoteConfig{Enabled: true, URL: "http://panel"}} }
	sender, err := New(Options{Store: s, Settings: settings, Transport: silent{}, Log: discard()})
	require.NoError(t, err)
	require.NoError(t, s.Update(func(tx *store.Tx) error { tx.Emit(v1.Event{}); return nil }))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.NoError(t, sender.Run(ctx), "a running request is cancelled")
	require.Zero(t, store.Cursor(s.Read(), cursorName), "and sent again by the next process")
	require.NoError(t, s.Close())
	require.ErrorIs(t, sender.Run(t.Context()), store.ErrClosed)
}
