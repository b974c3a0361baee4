package intent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestRequesters sends each request as another actor: the spec names the last one that
// has changed what it asks for, and nobody whose request changed nothing.
func TestRequesters(t *testing.T) {
	w := newWorld(t)
	by := func(name string) (*store.Request, v1.Actor) {
		a := v1.Actor{TokenID: name, Via: v1.ViaHTTP}
		return store.NewRequest(w.store, a, v1.Audit{}), a
	}
	creator, created := by("creator")
	require.NoError(t, intent.CreateContainer(creator, intent.Policy{}, "mc", w.spec()))
	want := v1.Requesters{Install: created}
	require.Equal(t, want, w.get("mc").Spec.RequestedBy)

	steps := []struct {
		name string
		do   func(*store.Request) error
		set  func(*v1.Requesters, v1.Actor)
	}{
		{"start", func(r *store.Request) error { return intent.StartContainer(r, "mc") }, func(q *v1.Requesters, a v1.Actor) { q.Run = a }},
		{"second start", func(r *store.Request) error { return intent.StartContainer(r, "mc") }, nil},
		{"stop", func(r *store.Request) error { return intent.StopContainer(r, "mc") }, func(q *v1.Requesters, a v1.Actor) { q.Stop = a }},
		{"second stop", func(r *store.Request) error { return intent.StopContainer(r, "mc") }, nil},
		{"kill", func(r *store.Request) error { return intent.KillContainer(r, "mc") }, func(q *v1.Requesters, a v1.Actor) { q.Stop = a }},
		{"restart", func(r *store.Request) error { return intent.RestartContainer(r, "mc") }, func(q *v1.Requesters, a v1.Actor) { q.Run = a }},
		{"reinstall", func(r *store.Request) error { return intent.ReinstallContainer(r, "mc", intent.Reinstallation{}) },
			func(q *v1.Requesters, a v1.Actor) { q.Stop, q.Install = a, a }},
		{"apply", func(r *store.Request) error {
			spec := w.spec()
			spec.Power = v1.PowerOn
			_, err := intent.ApplyContainer(r, intent.Policy{}, "mc", intent.ApplyRequest{Spec: spec}, intent.ApplyOptions{})
			return err
		}, func(q *v1.Requesters, a v1.Actor) { q.Run = a }},
		{"delete", func(r *store.Request) error { return intent.DeleteContainer(r, "mc", false) },
			func(q *v1.Requesters, a v1.Actor) { q.Stop, q.Delete = a, a }},
		{"second delete", func(r *store.Request) error { return intent.DeleteContainer(r, "mc", false) }, nil},
	}
	for _, step := range steps {
		r, actor := by(step.name)
		require.NoError(t, step.do(r), step.name)
		if step.set != nil {
			step.set(&want, actor)
		}
		require.Equal(t, want, w.get("mc").Spec.RequestedBy, step.name)
	}
}
