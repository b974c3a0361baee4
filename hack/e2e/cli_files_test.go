package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// commandLine runs the command line with this configuration or environment and standard
// input. It returns the output, that on standard error, and the exit code.
func commandLine(t *testing.T, b *berthtest.Berth, env []string, input string, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, berthtest.Binary(t), args...)
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	berthtest.Search(t, b, "the output of berth "+strings.Join(args, " "), stdout.String()+stderr.String())
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// TestCommandLineFiles copies a folder to a container's volume and back.
func TestCommandLineFiles(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "mc", berthtest.Spec{})
	env := []string{"BERTH_CONFIG=" + b.Config}
	must := func(input string, args ...string) string {
		t.Helper()
		out, errOut, code := commandLine(t, b, env, input, append([]string{"files"}, args...)...)
		require.Zero(t, code, "%v: %s", args, errOut)
		require.Empty(t, errOut, "progress is only for terminals")
		return out
	}
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/src/sub/empty", 0o755))
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	require.NoError(t, os.WriteFile(dir+"/src/large", large, 0o600))
	require.NoError(t, os.WriteFile(dir+"/src/sub/größe und.sh", []byte("echo hi"), 0o700))
	must("", "put", dir+"/src", "mc:")
	must("from a pipe", "put", "-", "mc:src/piped")
	must("", "get", "mc:src", dir+"/back")
	for name, want := range map[string]string{"large": string(large), "sub/größe und.sh": "echo hi", "piped": "from a pipe"} {
		got, err := os.ReadFile(filepath.Join(dir, "back", name))
		require.NoError(t, err)
		require.True(t, string(got) == want, name)
	}
	info, err := os.Stat(dir + "/back/sub/größe und.sh")
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o100, "it stays executable")
	require.DirExists(t, dir+"/back/sub/empty")
	require.Equal(t, "from a pipe", must("", "cat", "container/mc:src/piped"))
	require.Equal(t, "mc:src/sub/empty\nmc:src/sub/größe und.sh\n", must("", "ls", "-o", "name", "mc:src/sub"))
	must("", "rm", "-r", "mc:src")
	_, errOut, code := commandLine(t, b, env, "", "files", "get", "mc:src", dir)
	require.Equal(t, 3, code, errOut)
	_, errOut, code = commandLine(t, b, env, "", "files", "put", dir+"/src", "00000000:")
	require.Equal(t, 3, code, errOut)
}

// TestCommandLineGetInterrupted interrupts a download, which leaves no file.
func TestCommandLineGetInterrupted(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	volume := b.Volume(t)
	file, err := os.Create(filepath.Join(b.Data, "volumes", volume, "huge"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(file.Truncate(8<<30), file.Close())) // a hole
	dir := t.TempDir()
	cmd := exec.Command(berthtest.Binary(t), "files", "get", volume+":huge", dir)
	cmd.Env = []string{"BERTH_CONFIG=" + b.Config, "HOME=" + dir}
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	berthtest.Until(t, wait, "bytes arrive", func() bool {
		parts, err := filepath.Glob(dir + "/.berth-*.part")
		require.NoError(t, err)
		if len(parts) == 0 {
			return false
		}
		info, err := os.Stat(parts[0])
		return err == nil && info.Size() > 1<<20
	})
	began := time.Now()
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Less(t, time.Since(began), time.Minute)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestCommandLineApply applies, compares and changes two containers through a context.
func TestCommandLineApply(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	volume, image := b.Volume(t), berthtest.Busybox(t)
	env := []string{"XDG_CONFIG_HOME=" + t.TempDir()}
	run := func(want int, input string, args ...string) string {
		t.Helper()
		out, errOut, code := commandLine(t, b, env, input, args...)
		require.Equal(t, want, code, "%v: %s%s", args, out, errOut)
		return out + errOut
	}
	run(0, b.Token+"\n", "context", "set", "node", "--url", "http://"+b.Addr, "--token-file", "-")
	require.Contains(t, run(0, "", "context", "list"), "http://"+b.Addr)
	spec := func(id, command string) string {
		return "internal_id: " + id + "\nimage: " + image + "\nvolume_id: " + volume + "\nstartup_command: " + command + "\n---\n"
	}
	both := spec("a", "sleep 1") + spec("b", "sleep 2")
	require.Contains(t, run(0, both, "apply", "-f", "-", "--dry-run"), "container/b created (dry run)\n")
	require.Equal(t, "container/a created\ncontainer/b created\n", run(0, both, "apply", "-f", "-"))
	require.Equal(t, "container/a unchanged (dry run)\ncontainer/b unchanged (dry run)\n", run(0, both, "apply", "-f", "-", "--dry-run"))
	changed := spec("a", "sleep 3") + spec("b", "sleep 2")
	require.Contains(t, run(0, changed, "apply", "-f", "-", "--dry-run"), "container/a configured (dry run)\n  ")
	require.Contains(t, run(1, spec("a", "sleep 4")+"internal_id: b\n", "apply", "-f", "-"), "-: document 2: container/b: ")
	require.Equal(t, "sleep 1", b.Container(t, "a").StartupCommand, "nothing is changed if a document is invalid")
	require.Equal(t, "container/a configured\ncontainer/b unchanged\n", run(0, changed, "apply", "-f", "-"))
	run(1, "internal_id: c\n", "apply", "-f", "-", "--dry-run")
	require.Contains(t, run(0, "", "__complete", "stop", ""), "a\t")
}
