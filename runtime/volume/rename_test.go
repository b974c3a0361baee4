package volume_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRenameAndDelete(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.put(t, "a/one", "1")
	b.put(t, "two", "2")
	require.NoError(t, b.Rename(ctx, id, "a", "new/deep/a"))
	require.Equal(t, "1", b.get(t, "new/deep/a/one"))
	require.EqualError(t, b.Rename(ctx, id, "two", "new"), "File already exists at path: new")
	require.EqualError(t, b.Rename(ctx, id, "two", "two"), "File already exists at path: two")
	require.EqualError(t, b.Rename(ctx, id, "none", "x"), "Path not found: none")
	require.Equal(t, "invalid_request", code(b.Rename(ctx, id, "new", "new/deep/x")))
	require.Equal(t, "invalid_path", code(b.Rename(ctx, id, ".", "x")))
	require.Equal(t, "invalid_path", code(b.Rename(ctx, id, "new", ".")))

	require.Equal(t, "invalid_path", code(b.Delete(ctx, id, ".", nil)))
	require.Equal(t, "invalid_path", code(b.Delete(ctx, id, "./", nil)))
	require.EqualError(t, b.Delete(ctx, id, "none", nil), "Path not found: none")
	require.NoError(t, b.Delete(ctx, id, "new", nil))
	require.NoError(t, b.Delete(ctx, id, "two", nil))
	require.Empty(t, b.names(t))
}
