package volume

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// A write that fails reserves nothing: other files of the volume may have the space.
func TestFailedWriteReservesNothing(t *testing.T) {
	const id = "own"
	for _, appends := range []bool{false, true} {
		m, err := New(t.TempDir(), Options{UID: -1, GID: -1})
		require.NoError(t, err)
		require.NoError(t, m.Ensure(id))
		opened, err := m.OpenFile(t.Context(), id, "file", v1.OpenMode{Write: true, Create: true, Append: appends})
		require.NoError(t, err)
		defer opened.Close()
		h := opened.(*openedFile)
		require.NoError(t, h.file.Close())
		h.file, err = os.Open(m.Path(id) + "/file") // which refuses each write
		require.NoError(t, err)

		_, err = h.WriteAt(make([]byte, 800<<10), 0)
		require.Error(t, err)
		m.SetLimit(id, 1<<20, v1.Usage{})
		require.NoError(t, m.of(id).quota.Fits(800<<10))
	}
}

// eachStep is a context that calls do before each step of an operation.
type eachStep struct {
	context.Context
	do func()
}

func (c eachStep) Err() error { c.do(); return c.Context.Err() }

// TestFileOpenedWhileItsVolumeIsRemoved: nobody would count what is written to it.
func TestFileOpenedWhileItsVolumeIsRemoved(t *testing.T) {
	const id = "own"
	m, err := New(t.TempDir(), Options{UID: -1, GID: -1})
	require.NoError(t, err)
	require.NoError(t, m.Ensure(id))
	vol, err := m.open(t.Context(), id)
	require.NoError(t, err)
	defer vol.close()
	var h *openedFile
	open := sync.OnceFunc(func() { h, err = createInPlace(vol, "late", v1.OpenMode{Write: true, Create: true}) })
	require.NoError(t, m.Remove(eachStep{t.Context(), open}, id))
	require.NoError(t, err)
	defer h.Close()
	_, err = h.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, errRestored)
}
