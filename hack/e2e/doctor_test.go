package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// doctor runs `berth doctor -o json` and returns its exit code and the status of each check.
func doctor(t *testing.T, b *berthtest.Berth, args ...string) (code int, status map[string]string) {
	t.Helper()
	cmd := berthCommand(t, b, append([]string{"doctor", "-o", "json"}, args...)...)
	cmd.Env = append(cmd.Env, "DOCKER_HOST="+b.Engine.Host())
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	berthtest.Search(t, b, "the report", string(out))
	var report struct {
		Results []struct{ Check, Status, Message string }
	}
	require.NoError(t, json.Unmarshal(out, &report), "%s", out)
	status = map[string]string{}
	for _, r := range report.Results {
		status[r.Check] = r.Status
		t.Log(r.Status, r.Check, r.Message)
	}
	return cmd.ProcessState.ExitCode(), status
}

// TestDoctor: the same host with a daemon that is ready, one that is not, and none.
func TestDoctor(t *testing.T) {
	t.Parallel()
	panel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer panel-secret-1234567" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(panel.Close)
	const remote = "remote: {enabled: true, url: '%s/hook-path-secret', token: panel-secret-1234567}\n" +
		"docker: {registries: {r.example: {username: u, password: registry-secret-1}}}"
	b := berthtest.Start(t, berthtest.Options{Config: fmt.Sprintf(remote, panel.URL)})
	code, status := doctor(t, b)
	require.Zero(t, code, "warnings are not failures")
	require.Equal(t, "warn", status["configuration"], "remote.url is not https")
	for _, name := range []string{"daemon", "store", "panel", "limits"} {
		require.Equal(t, "ok", status[name], name)
	}
	require.NotEqual(t, "fail", status["engine"], "Docker before 23 has a known fault")
	b.Must(t, "POST", "/auth/tokens", map[string]any{"scopes": []string{"read"}}) // berthtest searches for it
	doctor(t, b)

	b.Term(t)
	_, status = doctor(t, b)
	require.Equal(t, "warn", status["daemon"])
	require.Equal(t, "ok", status["store"], "no process has it open")
	b.Run(t)
	b.Ready(t) // nothing was changed
	b.Kill9(t)
	_, status = doctor(t, b)
	require.Equal(t, "ok", status["store"], "also after a kill")
	b.Run(t)
	b.Ready(t)
}
