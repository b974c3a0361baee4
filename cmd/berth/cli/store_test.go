package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStoreBackupCommand(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /store/content": "200 the store"})
	name := filepath.Join(t.TempDir(), "berth.store")
	out, _, err := command(t, f.env(), "store", "backup", name)
	require.NoError(t, err)
	require.Equal(t, name+": 9B\n", out)
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "the store", string(got))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestStoreRestoreCommand(t *testing.T) {
	dir := t.TempDir()
	config, backup := filepath.Join(dir, "berth.yaml"), filepath.Join(dir, "backup")
	require.NoError(t, os.WriteFile(config, []byte("authorization: {token: "+clientToken+"}\nstorage: {data_path: "+dir+"}\n"), 0o600))
	require.NoError(t, os.WriteFile(backup, []byte("the store"), 0o600))
	var failure error
	restore := func(dataPath string, f *os.File) (string, error) {
		require.Equal(t, dir, dataPath)
		require.Equal(t, backup, f.Name())
		return "/kept", failure
	}
	call := func() (string, error) {
		root := NewRoot(Options{RestoreStore: restore, Environ: []string{"BERTH_CONFIG=" + config}})
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs([]string{"store", "restore", backup})
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := call()
	require.NoError(t, err)
	require.Equal(t, dir+": the store is restored; the one before is /kept\n", out)
	failure = errors.New("the store is in use")
	_, err = call()
	require.ErrorContains(t, err, "the store is in use")
}
