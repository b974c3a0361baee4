package download_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// TestTransitions: each change of state is a transition with its actor, and another
// attempt after a restart is none.
func TestTransitions(t *testing.T) {
	live(t, func(w *world) {
		alice, bob := v1.Actor{Name: "alice"}, v1.Actor{Name: "bob"}
		w.volume("v")
		for _, id := range []string{"good", "bad", "cancelled"} {
			w.update(func(tx *store.Tx) error {
				return store.Pulls.Create(tx, id, v1.PullSpec{VolumeID: "v", PullRequest: v1.PullRequest{URL: id, Path: "f"}, RequestedBy: alice})
			})
			w.want(id, v1.PullRunning)
			w.stop()
			w.run()
			switch id {
			case "good":
				w.web.result(id) <- nil
				w.want(id, v1.PullCompleted)
			case "bad":
				w.web.result(id) <- errors.New("no")
				w.want(id, v1.PullFailed)
			default:
				w.update(func(tx *store.Tx) error {
					return store.Pulls.SetSpec(tx, id, func(s *v1.PullSpec) error { s.Cancel, s.CancelledBy = true, bob; return nil })
				})
				w.want(id, v1.PullCancelled)
			}
		}
		var got []string
		events, err := store.ReadEvents(w.store.Read(), 0, 100)
		for _, e := range events {
			require.Equal(t, []string{v1.EventPull, "v"}, []string{e.Event, e.Volume})
			got = append(got, e.Pull+" "+e.Data+" "+e.Actor.Name)
		}
		require.NoError(t, err)
		require.Equal(t, []string{"good running alice", "good completed alice", "bad running alice", "bad failed alice",
			"cancelled running alice", "cancelled cancelled bob"}, got)
	})
}
