package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/hack/test/berthtest"
)

// The stores of testdata. That of version 1 was written by the berth of commit cba732e: the
// container mc on a volume, with the port 127.0.0.1:25565/tcp. That of version 99 was written by a store with 98 migrations.
const (
	oldStore   = "testdata/store-version-1.tar.gz"
	newerStore = "testdata/store-version-99.tar.gz"
)

// withStore prepares a daemon on a stored store.
func withStore(t *testing.T, archive string) *berthtest.Berth {
	t.Helper()
	b := berthtest.Prepare(t, berthtest.Options{})
	require.NoError(t, os.MkdirAll(b.Data, 0o700))
	out, err := exec.Command("tar", "-xzf", archive, "-C", b.Data).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return b
}

// TestUpgrade: this berth continues with the store of an old one.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	b := withStore(t, oldStore)
	b.Run(t)
	b.Ready(t)
	require.Contains(t, b.Log(), "migrating the store")
	for range 2 { // it stays so
		c := b.Container(t, "mc")
		require.Equal(t, "none:1", c.Image)
		require.Equal(t, []client.PortRef{{IP: "127.0.0.1", Port: 25565, Protocol: "tcp"}}, c.Bindings())
		require.Equal(t, "cb1fd461-6b73-4cad-8eec-a82bb9db78be", c.VolumeID)
		require.Equal(t, "mc", b.Pool(t)["127.0.0.1:25565/tcp"].Container, "the claim of the port")
		b.Restart(t)
	}
	b.Delete(t, "mc")
	b.Gone(t, "mc")
}

// TestDowngrade: an older berth refuses the store of a newer one, changes nothing in it, and
// names the remedy.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	b := withStore(t, newerStore)
	path := filepath.Join(b.Data, "store")
	content := func() map[string]string {
		files := map[string]string{}
		entries, err := os.ReadDir(path)
		require.NoError(t, err)
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(path, e.Name()))
			require.NoError(t, err)
			files[e.Name()] = string(text)
		}
		return files
	}
	before := content()
	b.Run(t)
	_, code := b.Exit(t, time.Now())
	require.Equal(t, 1, code)
	require.Contains(t, b.Log(), "store was written by a newer berth: it has version 99, this one knows up to ")
	require.Contains(t, b.Log(), "start the newer one")
	after := content()
	for name, text := range before {
		require.Equal(t, text, after[name], name)
	}
}
