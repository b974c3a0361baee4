package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/cmd/berth-wings/config"
	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// run runs a command line and returns its output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestConfigureAsThePanelShows(t *testing.T) {
	p := paneltest.Start(t)
	path := filepath.Join(t.TempDir(), "config.yml")
	args := []string{"configure", "--panel-url", p.URL, "--token", paneltest.Key, "--node", "1", "--config-path", path}
	out, err := run(t, args...)
	require.NoError(t, err)
	require.Equal(t, "wrote "+path+"\n", out)
	f, err := config.Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, p.URL, f.Config.Remote)

	args[6] = "x"
	_, err = run(t, args...)
	require.ErrorContains(t, err, "--node: must be the number")
	_, err = run(t, "configure")
	require.ErrorContains(t, err, "required flag")
	out, err = run(t, "--help")
	require.NoError(t, err)
	require.Contains(t, out, "configure")
}

// TestServe starts the bridge as a unit of systemd does, and ends it.
func TestServe(t *testing.T) {
	b := berthtest.Start(t, berthtest.Options{})
	p := paneltest.Start(t)
	dir := t.TempDir()
	file, secret, port := filepath.Join(dir, "config.yml"), filepath.Join(dir, "token"), berthtest.FreePort(t)
	require.NoError(t, os.WriteFile(secret, []byte(b.Token+"\n"), 0o600))
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "token_id: %s\ntoken: %s\nremote: %s\napi: {host: 127.0.0.1, port: %d}\nthrottles: {lines: 1}\nsystem: {root_directory: %s, sftp: {bind_port: %d}}\n",
		paneltest.TokenID, paneltest.Token, p.URL, port, dir, berthtest.FreePort(t)), 0o600))
	t.Setenv("BERTH_URL", "http://"+b.Addr)
	t.Setenv("BERTH_TOKEN", "")
	_, err := run(t, "--config", file)
	require.ErrorContains(t, err, "no token of berth")
	t.Setenv("BERTH_TOKEN_FILE", secret)

	// A panel that does not answer at first is waited for.
	failures := 1
	p.Fail(func(paneltest.Call) int { failures--; return min(1, max(0, failures+1)) * 403 })
	ctx, cancel := context.WithCancel(t.Context())
	logs, ended := t.Output(), make(chan error, 1)
	go func() { ended <- bridge{file}.run(ctx, os.Environ(), logs) }()
	n := paneltest.Node{URL: fmt.Sprint("http://127.0.0.1:", port)}
	berthtest.Until(t, 3*time.Minute, "the bridge serves", func() bool {
		r, err := http.Get(n.URL + "/x")
		if err == nil {
			_ = r.Body.Close()
		}
		return err == nil && r.StatusCode == 404
	})
	n.Want(t, 200, "GET", "/api/system", nil)
	require.Len(t, p.Calls("GET /servers"), 2)
	works := regexp.MustCompile(`(?s)ok +file .*ok +berth +berth \S+ answers.*ok +panel .* has 0 servers.*ok +node +listens at .*ok +import`)
	berthtest.Until(t, 3*time.Minute, "the doctor finds nothing, and the engine answers in time", func() bool {
		out, err := run(t, "doctor", "--config", file)
		require.NoError(t, err)
		return works.MatchString(out)
	})
	cancel()
	require.NoError(t, <-ended)

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "volumes", "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1"), 0o700))
	p.Fail(func(paneltest.Call) int { return 403 })
	out, err := run(t, "doctor", "--config", file)
	require.ErrorContains(t, err, "does not work")
	require.Regexp(t, `(?s)FAIL +panel .*403.*FAIL +node .*systemctl start berth-wings.*warn +import .* 1 servers`, out)
	t.Setenv("BERTH_TOKEN_FILE", "/missing")
	out, err = run(t, "doctor", "--config", file)
	require.ErrorContains(t, err, "does not work")
	require.Regexp(t, `^FAIL +file +open /missing`, out)
}

// TestImportCommand: a plan is shown while wings runs; an import waits until it does not.
func TestImportCommand(t *testing.T) {
	b := berthtest.Start(t, berthtest.Options{})
	p := paneltest.Start(t)
	const uuid = "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1"
	p.SetServer(t, `{"settings": {"uuid": "`+uuid+`", "meta": {"name": "al\u001b[1mpha"}, "build": {}, "container": {"image": "x"}, "allocations": {}}}`)
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yml")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "volumes", "stray"), 0o700))
	wings, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", berthtest.FreePort(t)))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "token_id: %s\ntoken: %s\nremote: %s\napi: {host: 127.0.0.1, port: %d}\nsystem: {root_directory: %s}\n",
		paneltest.TokenID, paneltest.Token, p.URL, wings.Addr().(*net.TCPAddr).Port, dir), 0o600))
	t.Setenv("BERTH_URL", "http://"+b.Addr)
	t.Setenv("BERTH_TOKEN", b.Token)
	out, err := run(t, "import", "--config", file, "--dry-run")
	require.NoError(t, err)
	require.Regexp(t, uuid+` +al\?\[1mpha +0 +none: \S+/volumes/`+uuid+` is missing`, out)
	require.Regexp(t, `stray +none: it is not a server of the panel`, out)
	_, err = run(t, "import", "--config", file)
	require.ErrorContains(t, err, "systemctl disable --now wings")
	require.NoError(t, wings.Close())
	out, err = run(t, "import", "--config", file)
	require.ErrorContains(t, err, "1 servers are not imported")
	require.Contains(t, out, "\n"+uuid+" not imported: ")
	_, err = run(t, "import", "--config", file, "--undo", uuid)
	require.ErrorContains(t, err, "it was not imported")
}
