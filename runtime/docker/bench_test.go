package docker

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// What this package adds to the engine's own time: compare start with bare start.
func BenchmarkEngine(b *testing.B) {
	r := newRig(b)
	s := r.spec("bench", "cat")
	id, err := r.Create(b.Context(), s)
	require.NoError(b, err)
	kill := func(b *testing.B) {
		b.StopTimer()
		require.NoError(b, r.Kill(b.Context(), s.Name))
		b.StartTimer()
	}
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, r.Start(b.Context(), s.Name))
			kill(b)
		}
	})
	b.Run("bare start", func(b *testing.B) {
		for b.Loop() {
			r.client.Must(b, http.MethodPost, "/containers/"+id+"/start", nil)
			kill(b)
		}
	})
	require.NoError(b, r.Start(b.Context(), s.Name))
	b.Run("inspect", func(b *testing.B) {
		for b.Loop() {
			_, err := r.Inspect(b.Context(), s.Name)
			require.NoError(b, err)
		}
	})
	absent := r.spec("absent", "").Name
	b.Run("inspect of none", func(b *testing.B) {
		for b.Loop() {
			_, err := r.Inspect(b.Context(), absent)
			require.Error(b, err)
		}
	})
	b.Run("input", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, r.Input(b.Context(), id, []byte("say hello\n")))
		}
	})
	b.Run("stats", func(b *testing.B) {
		for b.Loop() {
			_, err := r.Stats(b.Context(), id)
			require.NoError(b, err)
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			_, err := r.List(b.Context())
			require.NoError(b, err)
		}
	})
}
