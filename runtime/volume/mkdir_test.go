package volume_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestDeepPaths checks that the longest path costs as many steps as it has folders,
// not their square.
func TestDeepPaths(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	deep := strings.TrimSuffix(strings.Repeat("a/", v1.MaxPath/2), "/")
	require.NoError(t, b.Mkdir(ctx, id, deep))
	require.NoError(t, b.Mkdir(ctx, id, deep))
	require.NoError(t, b.Delete(ctx, id, deep, nil))
	require.NoError(t, b.Write(ctx, id, deep, strings.NewReader("x")))
	require.Equal(t, "file_exists", code(b.Mkdir(ctx, id, deep)))
	require.NoError(t, b.Delete(ctx, id, "a", nil))
	require.Zero(t, b.Used(id).Bytes)
}

func TestMkdir(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", "")
	require.NoError(t, b.Mkdir(t.Context(), id, "x/y/z"))
	require.NoError(t, b.Mkdir(t.Context(), id, "x/y/z/"), "again")
	require.NoError(t, b.Mkdir(t.Context(), id, "."))
	require.EqualError(t, b.Mkdir(t.Context(), id, "file"), "File already exists at path: file")
	require.EqualError(t, b.Mkdir(t.Context(), id, "file/x"), "File already exists at path: file")
}
