package intent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestRequestedBy sends each request as another actor: the spec names the last one that
// requested an action, and nobody whose request changed nothing.
func TestRequestedBy(t *testing.T) {
	w := newWorld(t)
	by := func(name string) (*store.Request, v1.Actor) {
		a := v1.Actor{TokenID: name, Via: v1.ViaHTTP}
		return store.NewRequest(w.store, a, v1.Audit{}), a
	}
	creator, created := by("creator")
	require.NoError(t, intent.CreateContainer(creator, intent.Policy{}, "mc", w.spec()))
	want := created
	require.Equal(t, want, w.get("mc").Spec.RequestedBy)

	steps := []struct {
		name string
		do   func(*store.Request) error
		sets bool
	}{
		{"start", func(r *store.Request) error { return intent.Power(r, "mc", intent.Start) }, true},
		{"second start", func(r *store.Request) error { return intent.Power(r, "mc", intent.Start) }, false},
		{"apply that requests no action", func(r *store.Request) error {
			spec := w.spec()
			spec.StartTimeout = v1.Duration(time.Hour)
			_, err := intent.ApplyContainer(r, intent.Policy{}, "mc", spec, intent.ApplyOptions{})
			return err
		}, false},
		{"stop", func(r *store.Request) error { return intent.Power(r, "mc", intent.Stop) }, true},
		{"second stop", func(r *store.Request) error { return intent.Power(r, "mc", intent.Stop) }, false},
		{"kill", func(r *store.Request) error { return intent.Power(r, "mc", intent.Kill) }, true},
		{"restart", func(r *store.Request) error { return intent.Power(r, "mc", intent.Restart) }, true},
		{"reinstall", func(r *store.Request) error { return intent.ReinstallContainer(r, "mc", v1.ReinstallRequest{}) },
			true},
		{"apply", func(r *store.Request) error {
			spec := w.spec()
			spec.Power = v1.PowerOn
			_, err := intent.ApplyContainer(r, intent.Policy{}, "mc", spec, intent.ApplyOptions{})
			return err
		}, true},
		{"delete", func(r *store.Request) error { return intent.DeleteContainer(r, "mc") },
			true},
		{"second delete", func(r *store.Request) error { return intent.DeleteContainer(r, "mc") }, false},
	}
	for _, step := range steps {
		r, actor := by(step.name)
		require.NoError(t, step.do(r), step.name)
		if step.sets {
			want = actor
		}
		require.Equal(t, want, w.get("mc").Spec.RequestedBy, step.name)
	}
}
