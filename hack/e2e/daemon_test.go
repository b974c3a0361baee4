package e2e_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

func TestSecondDaemonExits(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	second := exec.CommandContext(ctx, berthtest.Binary(t), "serve", "--config", b.Config)
	second.Env = append(os.Environ(), "BERTH_SERVER_PORT="+strconv.Itoa(berthtest.FreePort(t)))
	out, err := second.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, second.ProcessState.ExitCode())
	require.Contains(t, string(out), "stop it first")
	require.NotContains(t, string(out), b.Token)
	require.Equal(t, 200, b.Do(t, "GET", "/readyz", nil).Status, "the first daemon is not affected")
	t.Logf("its output: %s", bytes.TrimSpace(out))
}

func TestTerminateLeavesContainersRunning(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", nil)
	before := b.Processes(t)
	require.NotEmpty(t, before["mc"])
	b.Create(t, "late", berthtest.Spec{"install_script": "sleep 100"})
	sockets := []*berthtest.Socket{b.Listen(t, "/ws"), b.Listen(t, "/ws/mc")}
	took, code := b.Term(t)
	require.Zero(t, code, b.Log())
	require.Less(t, took, 20*time.Second)
	for _, s := range sockets {
		require.Equal(t, 1001, s.Ended(t))
	}
	require.Equal(t, before, b.Processes(t))
	b.Run(t)
	b.Ready(t)
	require.Equal(t, v1.Running, b.Container(t, "mc").State)
	t.Logf("ended after %s", took.Round(time.Millisecond))
}

func TestReload(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	text, err := os.ReadFile(b.Config)
	require.NoError(t, err)
	public := func() bool { return b.Do(t, "GET", "/metrics", nil, "Authorization", "", "Accept", "").Status == 200 }
	require.False(t, public())

	b.WriteConfig(t, string(text)+"metrics: {public: true}\n")
	b.Signal(t, syscall.SIGHUP)
	berthtest.Until(t, wait, "the new configuration is in force", public)

	b.WriteConfig(t, string(text)+"metrics: {public: maybe}\n")
	got := b.Do(t, "POST", "/remote/config/reload", nil)
	require.Equal(t, 400, got.Status, string(got.Body))
	require.Contains(t, string(got.Body), "metrics.public")
	b.Signal(t, syscall.SIGHUP)
	berthtest.Until(t, wait, "the fault is logged", func() bool { return strings.Contains(b.Log(), "the old one stays in force") })
	require.True(t, public(), "the old configuration stays in force")

	b.WriteConfig(t, string(text)+"reconcile: {workers: 2}\n")
	got = b.Must(t, "POST", "/remote/config/reload", nil)
	holds(t, `{"message":"*","restart_required":["reconcile.workers"]}`, got.Body, string(got.Body))
	require.False(t, public())
	holds(t, `{"version":"*","server":{"host":"127.0.0.1","port":"*"},"authorization":{"enabled":true,"token":"`+b.Token+`"},
		"remote":{"enabled":false,"url":"","token":""}}`, b.Must(t, "GET", "/remote/config", nil).Body, "config")
}

// TestServeWithoutConfigFile: the daemon writes a configuration with a new token that
// only its owner can read.
func TestServeWithoutConfigFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, port := filepath.Join(dir, "etc", "berth.yaml"), strconv.Itoa(berthtest.FreePort(t))
	cmd := exec.Command(berthtest.Binary(t), "serve")
	cmd.Env = append(os.Environ(), "BERTH_CONFIG="+config, "BERTH_SERVER_HOST=127.0.0.1", "BERTH_SERVER_PORT="+port,
		"BERTH_STORAGE_DATA_PATH="+filepath.Join(dir, "data"), "BERTH_FIREWALL_BACKEND=none")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	berthtest.Until(t, wait, "it serves", func() bool {
		answer, err := http.Get("http://127.0.0.1:" + port + "/api/v1/public/ping")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err == nil && answer.StatusCode == 200
	})
	stat, err := os.Stat(config)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, stat.Mode())
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	_, token, _ := strings.Cut(string(text), "berth_")
	token = "berth_" + token[:32]
	c := berthtest.NewClient(t, "127.0.0.1:"+port, token)
	require.Equal(t, 200, c.Do(t, "GET", "/containers", nil).Status, "with the token of the file")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	require.Contains(t, out.String(), config, "the output names the file")
	require.NotContains(t, out.String(), token)
}
