package cli

import (
	"encoding/json"
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
	require.Contains(t, out, "13 checks: ")
}
