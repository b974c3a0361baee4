package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// berthCommand returns a command line that calls a daemon. It is killed when the test
// ends, and after 3 minutes.
func berthCommand(t *testing.T, b *berthtest.Berth, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*wait)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, berthtest.Binary(t), append(args, "--config", b.Config)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}

// runCommand runs a command line, and returns its output and exit code.
func runCommand(t *testing.T, b *berthtest.Berth, args ...string) (out, errOut string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := berthCommand(t, b, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exited *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exited) {
		require.NoError(t, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// TestLogsFollowSince: the lines before and after the beginning of the stream are each
// printed once.
func TestLogsFollowSince(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", berthtest.Spec{"startup_command": `sh -c 'i=0; while true; do i=$((i+1)); echo tick $i; sleep 0.05; done'`})
	berthtest.Until(t, wait, "the container prints", func() bool {
		out, _, _ := runCommand(t, b, "logs", "mc")
		return strings.Contains(out, "tick 20\n")
	})
	cmd := berthCommand(t, b, "logs", "mc", "-f", "--since", "1h")
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(pipe)
	for i := 1; i <= 100; i++ {
		require.True(t, lines.Scan())
		require.Equal(t, fmt.Sprintf("tick %d", i), strings.TrimRight(lines.Text(), "\r"))
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, pipe)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "an interrupt is no error")
}

func TestTopAndVersion(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", nil)
	b.Made(t, "stopped", nil)
	berthtest.Until(t, wait, "top shows the running container", func() bool {
		out, errOut, code := runCommand(t, b, "top")
		require.Zero(t, code, errOut)
		return regexp.MustCompile(`(?m)^mc +[0-9.]+ +[0-9.]+[KM]iB `).MatchString(out) && !strings.Contains(out, "stopped")
	})
	out, errOut, code := runCommand(t, b, "version")
	require.Zero(t, code, errOut)
	require.Regexp(t, `(?s)^client: .*server:  [0-9.]+ \(http://127`, out)
	require.NotContains(t, out, b.Token)
}
