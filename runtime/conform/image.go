package conform

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func image(t *testing.T, h *Harness) {
	id, err := h.Engine.ImageID(t.Context(), h.Image)
	require.NoError(t, err)
	require.NotEmpty(t, id)
	none, err := h.Engine.ImageID(t.Context(), h.Missing)
	require.NoError(t, err)
	require.Empty(t, none)
	s := h.spec(Sleeps)
	s.Image = h.Missing
	_, err = h.Engine.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrImageNotFound, "create never pulls")
}

func pull(t *testing.T, h *Harness) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.Engine.Pull(cancelled, h.Pullable, runtime.Auth{}, nil), context.Canceled)
	var last runtime.Progress
	require.NoError(t, h.Engine.Pull(t.Context(), h.Pullable, runtime.Auth{}, func(p runtime.Progress) { last = p }))
	require.Equal(t, last.Layers, last.Done)
	require.Equal(t, last.Total, last.Current)
	id, err := h.Engine.ImageID(t.Context(), h.Pullable)
	require.NoError(t, err)
	require.NotEmpty(t, id)
	require.NoError(t, h.Engine.Pull(t.Context(), h.Pullable, runtime.Auth{}, nil), "again")
	same, err := h.Engine.ImageID(t.Context(), h.Pullable)
	require.NoError(t, err)
	require.Equal(t, id, same, "the tag was not moved")
}

func pullRefused(t *testing.T, h *Harness) {
	require.ErrorIs(t, h.Engine.Pull(t.Context(), h.Missing, runtime.Auth{}, nil), runtime.ErrImageNotFound)
	require.ErrorIs(t, h.Engine.Pull(t.Context(), h.Locked, runtime.Auth{}, nil), runtime.ErrDenied)
	wrong, elsewhere := h.Auth, h.Auth
	wrong.Password, elsewhere.Host = "wrong", "elsewhere.example"
	require.ErrorIs(t, h.Engine.Pull(t.Context(), h.Locked, elsewhere, nil), runtime.ErrInvalid, "credentials of another registry")
	require.ErrorIs(t, h.Engine.Pull(t.Context(), h.Locked, wrong, nil), runtime.ErrDenied)
	require.NoError(t, h.Engine.Pull(t.Context(), h.Locked, h.Auth, nil))
}
