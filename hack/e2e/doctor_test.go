package e2e_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
	for _, name := range []string{"daemon", "store", "engine", "panel", "limits"} {
		require.Equal(t, "ok", status[name], name)
	}

	const canary = "canary-of-a-variable"
	b.Made(t, "doctor", berthtest.Spec{"env": map[string]string{"SECRET": canary}})
	b.Must(t, "POST", "/auth/tokens", map[string]any{"scopes": []string{"read"}}) // berthtest searches for it
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte(b.Log()+"\npanel-secret-1234567 "+canary+"\n"), 0o600))
	code, _ = doctor(t, b, "--bundle", bundle, "--log", log)
	require.Zero(t, code)
	files := readBundle(t, bundle)
	for name, text := range files {
		berthtest.Search(t, b, name, text)
		for _, secret := range []string{canary, "panel-secret", "registry-secret", "hook-path-secret"} {
			require.NotContains(t, text, secret, name)
		}
	}
	require.Contains(t, files["events.json"], `"container": "doctor"`)
	require.Contains(t, files["metrics.txt"], "berth_build_info")
	require.Contains(t, files["log.txt"], "installing")

	b.Term(t)
	_, status = doctor(t, b)
	require.Equal(t, "warn", status["daemon"])
	require.Equal(t, "ok", status["store"], "it is verified on the disk")
	b.Run(t)
	b.Ready(t) // nothing was changed
	b.Kill9(t)
	_, status = doctor(t, b)
	require.Equal(t, "ok", status["store"], "a log that was not closed is no damage")
	b.Run(t)
	b.Ready(t)
}

// readBundle returns the files of a bundle by name.
func readBundle(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[filepath.Base(h.Name)] = string(text)
	}
}
