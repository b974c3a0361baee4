package container_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/egg"
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/hack/test/eggs"
)

// TestEggs applies each egg of the set: it is valid, is installed, starts and stops.
func TestEggs(t *testing.T) {
	wild, _ := eggs.Set(t)
	for _, e := range wild {
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			got, err := egg.Import(v1.EggRequest{Egg: string(e.Content), InternalID: "mc", VolumeID: "v", Memory: 1 << 30,
				Ports: []v1.Port{{IP: "127.0.0.1", Port: 25565, Protocol: "tcp"}, {IP: "127.0.0.1", Port: 25565, Protocol: "udp"}}})
			require.NoError(t, err)
			var f v1.FieldErrors
			intent.CheckContainer(&f, intent.Policy{}, "mc", &got.Spec)
			require.NoError(t, f.Err())
			live(t, func(w *world) {
				w.engine.Outside.AddImage(got.Spec.Image)
				w.engine.Outside.AddImage(got.Spec.InstallImage)
				w.installed(func(s *v1.ContainerSpec) {
					*s = got.Spec
					s.InstallGeneration, s.Power = 1, v1.PowerOff
				})
				w.change(on)
				w.want(v1.Running)
				w.change(kill)
				w.want(v1.Exit)
			})
		})
	}
}
