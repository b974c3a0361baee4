package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFirewallClean(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "berth.yaml")
	require.NoError(t, os.WriteFile(config, []byte("authorization: {token: "+clientToken+"}\nstorage: {data_path: "+dir+"}\n"), 0o600))
	call := func(changed bool, failure error, args ...string) (string, error) {
		remove := func(_ context.Context, dataPath string) (bool, error) {
			require.Equal(t, dir, dataPath)
			return changed, failure
		}
		root := NewRoot(Options{RemoveRules: remove, Environ: []string{"BERTH_CONFIG=" + config}})
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"firewall", "clean"}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := call(true, nil)
	require.NoError(t, err)
	require.Equal(t, "the firewall rules are removed\n", out)
	out, err = call(false, nil)
	require.NoError(t, err)
	require.Equal(t, "there are no firewall rules of this daemon\n", out)
	out, err = call(true, nil, "-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{"changed": true}`, out)
	_, err = call(false, errors.New("the store is in use"))
	require.ErrorContains(t, err, "the store is in use")
}
