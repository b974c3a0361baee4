package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// process is a bridge that runs as a program of its own.
type process struct {
	paneltest.Node
	sftp string // address

	t   testing.TB
	env []string
	cmd *exec.Cmd
}

// newProcess returns a bridge between a panel and a daemon, which does not run. more is YAML of its file.
func newProcess(t testing.TB, p *paneltest.Panel, daemon *berthtest.Berth, more string) *process {
	t.Helper()
	dir, port, sftp := t.TempDir(), berthtest.FreePort(t), berthtest.FreePort(t)
	file := filepath.Join(dir, "config.yml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `token_id: %s
token: %s
remote: %s
api: {host: 127.0.0.1, port: %d, upload_limit: 1}
system: {root_directory: %s, activity_send_interval: 1, sftp: {bind_address: 127.0.0.1, bind_port: %d}}
%s
`, paneltest.TokenID, paneltest.Token, p.URL, port, dir, sftp, more), 0o600))
	return &process{Node: paneltest.Node{URL: fmt.Sprint("http://127.0.0.1:", port)}, sftp: fmt.Sprint("127.0.0.1:", sftp),
		t: t, env: append(os.Environ(), bridgeOf+"="+file, "BERTH_URL=http://"+daemon.Addr, "BERTH_TOKEN="+daemon.Token)}
}

// start starts the bridge, and waits until it answers. It is ended with the test.
func (p *process) start() {
	p.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = p.env, p.t.Output()
	require.NoError(p.t, cmd.Start())
	p.cmd = cmd
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
	})
	berthtest.Until(p.t, 3*time.Minute, "the bridge answers", func() bool {
		a, err := p.Try(p.t, http.MethodGet, "/api/system", nil)
		return err == nil && a.Status == 200
	})
}

// restart kills the bridge with SIGKILL and starts it again.
func (p *process) restart() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // it was killed
	p.start()
}
