package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// The stores of testdata: one of the schema before the first release, which begins at version 1 in
// another form, and one of version 99.
var otherStores = []string{"testdata/store-version-1.tar.gz", "testdata/store-version-99.tar.gz"}

// withStore prepares a daemon on a stored store.
func withStore(t *testing.T, archive string) *berthtest.Berth {
	t.Helper()
	b := berthtest.Prepare(t, berthtest.Options{})
	require.NoError(t, os.MkdirAll(b.Data, 0o700))
	out, err := exec.Command("tar", "-xzf", archive, "-C", b.Data).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return b
}

// TestOtherSchemaIsRefused: berth refuses a store of another schema, changes nothing in it, and
// names the remedy.
func TestOtherSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for _, archive := range otherStores {
		b := withStore(t, archive)
		before := contentOf(t, filepath.Join(b.Data, "store"))
		b.Run(t)
		_, code := b.Exit(t, time.Now())
		require.Equal(t, 1, code)
		require.Contains(t, b.Log(), "store was written by another version of berth: its schema is not version 1")
		require.Contains(t, b.Log(), "start the version that wrote it, or restore a backup that this one has made")
		after := contentOf(t, filepath.Join(b.Data, "store"))
		for name, text := range before {
			require.Equal(t, text, after[name], name)
		}
	}
}

// contentOf returns the content of each file of a directory.
func contentOf(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(path, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(text)
	}
	return files
}
