package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/cmd/berth/doctor"
)

func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	path := writeFile(t, "server: {host: 127.0.0.1, port: 1}\nauthorization: {token: "+clientToken+"}\n"+
		"storage: {data_path: "+dir+"}\nfirewall: {backend: none}\ndocker: {host: unix:///does/not/exist}\n")
	out, errOut, err := command(t, nil, "doctor", "--config", path, "-o", "json")
	require.ErrorIs(t, err, ErrReported)
	require.Equal(t, exitError, ExitCode(err))
	require.Empty(t, errOut)
	var r doctor.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, doctor.Fail, r.Status)
	status := map[string]doctor.Status{}
	for _, result := range r.Results {
		status[result.Check] = result.Status
		require.Equal(t, result.Status == doctor.OK, result.Remedy == "", "%v", result)
	}
	require.Equal(t, doctor.OK, status["configuration"])
	require.Equal(t, doctor.OK, status["store"])
	require.Equal(t, doctor.Warn, status["daemon"])
	require.Equal(t, doctor.Fail, status["engine"])
	out, _, err = command(t, nil, "doctor", "--config", filepath.Join(dir, "none.yaml"))
	require.ErrorIs(t, err, ErrReported)
	require.Contains(t, out, "fail  configuration   configuration: open "+filepath.Join(dir, "none.yaml"))
	require.Contains(t, out, "-> write one with berth config init")
	require.Contains(t, out, "15 checks: ")
}

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
