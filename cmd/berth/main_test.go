package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/cmd/berth/cli"
)

func TestServeNamesBadConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(path, []byte("authorization: {token: berth_00000000000000000000000000000002}\nserver: {prot: 1}\n"), 0o600))
	root := cli.NewRoot(cli.Options{Environ: []string{"BERTH_CONFIG=" + path}, Serve: serve})
	root.SetArgs([]string{"serve"})
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	require.ErrorContains(t, err, path+": server.prot:")
	require.NotContains(t, out.String()+err.Error(), "berth_00000000000000000000000000000002")
}

func TestRelease(t *testing.T) {
	defer func(before string) { version = before }(version)
	for given, want := range map[string]string{"0.1.0": "0.1.0", "1.2.3-5-g1a2b3c4-dirty": "1.2.3", "0.1.0+g1a2b3c4": "0.1.0"} {
		version = given
		require.Equal(t, want, release())
	}
}
