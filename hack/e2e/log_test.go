package e2e_test

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestLogIsJSON terminates a daemon, and lets others fail because of
// their arguments, their configuration and their port.
func TestLogIsJSON(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := strconv.Itoa(berthtest.FreePort(t))
	_, takenPort, _ := net.SplitHostPort(taken.Addr().String())
	for name, arguments := range map[string][]string{
		"berth ends: unknown flag":  {"--nonsense"},
		"berth ends: server.port":   {"--server.port=x"},
		"berth ends: address":       {"--server.port=" + takenPort},
		"serving":                   {"--server.port=" + port},
		"berth ends: a text format": {"--log.format=xml"},
	} {
		dir := t.TempDir()
		cmd := exec.Command(berthtest.Binary(t), append([]string{"serve"}, arguments...)...)
		cmd.Env = append(os.Environ(), "BERTH_CONFIG="+filepath.Join(dir, "berth.yaml"), "BERTH_SERVER_HOST=127.0.0.1",
			"BERTH_STORAGE_DATA_PATH="+filepath.Join(dir, "data"), "BERTH_FIREWALL_BACKEND=none", "BERTH_LOG_FORMAT=json")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, cmd.Start())
		if name == "serving" {
			berthtest.Until(t, wait, "it serves", func() bool {
				conn, err := net.Dial("tcp", "127.0.0.1:"+port)
				if err == nil {
					_ = conn.Close()
				}
				return err == nil
			})
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		}
		_ = cmd.Wait()
		message, _, _ := strings.Cut(name, ":")
		require.Contains(t, out.String(), `"msg":"`+message+`"`, name)
		for line := range strings.Lines(out.String()) {
			require.True(t, json.Valid([]byte(line)), "%s: %s", name, line)
		}
	}
}
