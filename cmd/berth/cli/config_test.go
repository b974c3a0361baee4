package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// runConfig runs `berth config` with these arguments and returns its output.
func runConfig(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, errOut, err := command(t, []string{"HOME=/home/me"}, append([]string{"config"}, args...)...)
	return out + errOut, err
}

func TestConfigInitNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "berth.yaml")
	out, err := runConfig(t, "init", path)
	require.NoError(t, err)
	require.Equal(t, "wrote "+path+"\n", out)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	first, err := os.ReadFile(path)
	require.NoError(t, err)

	_, err = runConfig(t, "init", path)
	require.ErrorContains(t, err, "not overwritten")
	still, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, first, still)

	out, err = runConfig(t, "init", "--force", path, "-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"`+path+`"}`, out)
	kept, err := os.ReadFile(path + ".bak")
	require.NoError(t, err)
	require.Equal(t, first, kept)
	fresh, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, first, fresh, "the token is new")
	names, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, names, 2, "no temporary file is left")
}

func TestConfigCheck(t *testing.T) {
	path := writeFile(t, "server: {port: x}\nlog: {level: loud}\n")
	out, err := runConfig(t, "check", path)
	require.Error(t, err)
	require.Equal(t, "fault: server.port: must be a whole number\n"+
		"fault: authorization.token: is required: `berth config init` writes a file with a fresh one\n"+
		"fault: log.level: must be one of debug, info, warn, error\n"+path+" has 3 faults\n", out)

	broken := writeFile(t, "server: {port: 1")
	out, err = runConfig(t, "check", broken)
	require.Error(t, err)
	require.Contains(t, out, "fault: line 1: ")
	require.Contains(t, out, broken+" has 1 fault\n")

	out, err = runConfig(t, "check", "-o", "json", path)
	require.Error(t, err)
	var got report
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.False(t, got.Valid)
	require.Len(t, got.Faults, 3)

	_, err = runConfig(t, "check", "--config", path+".none")
	require.Error(t, err)

	out, err = runConfig(t, "check", writeFile(t, "authorization: {token: "+clientToken+"}"))
	require.NoError(t, err)
	require.Contains(t, out, "is valid")
	require.NotContains(t, out, clientToken)
}
