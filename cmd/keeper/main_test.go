package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keeper")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// inPidNamespace returns a command that is the first process of a pid namespace.
func inPidNamespace(args ...string) *exec.Cmd {
	return exec.Command("unshare", append([]string{"--pid", "--fork", "--mount-proc", "--kill-child"}, args...)...)
}

func code(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	return exit.ExitCode()
}

func TestRunExitsWithTheCodeOfItsCommand(t *testing.T) {
	keeper := build(t)
	for want, args := range map[int][]string{
		0:   {"true"},
		3:   {"sh", "-c", "exit 3"},
		143: {"sh", "-c", "kill -TERM $$"},
		126: {"/etc/passwd"},
		127: {"no-such-program"},
	} {
		out, err := inPidNamespace(append([]string{keeper, "run", "--"}, args...)...).CombinedOutput()
		require.Equal(t, want, code(t, err), "%v: %s", args, out)
	}
}

func TestRunSetsTheHomeOfAUserWithoutOne(t *testing.T) {
	keeper := build(t)
	for had, want := range map[string]string{"/": "/home/container", "/root": "/root"} {
		c := exec.Command(keeper, "run", "-home", "/home/container", "--", "sh", "-c", "echo $HOME")
		c.Env = append(os.Environ(), "HOME="+had)
		out, err := c.Output()
		require.NoError(t, err)
		require.Equal(t, want, strings.TrimSpace(string(out)))
	}
}

// started starts a keeper whose command prints a line when it is ready.
func started(t *testing.T, args ...string) (c *exec.Cmd, line func() string) {
	t.Helper()
	c = inPidNamespace(args...)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	line = func() string {
		t.Helper()
		var text bytes.Buffer
		for one := make([]byte, 1); ; {
			n, err := out.Read(one)
			require.NoError(t, err)
			if n == 1 && one[0] == '\n' {
				return text.String()
			}
			text.Write(one[:n])
		}
	}
	require.Equal(t, "ready", line())
	return c, line
}

// inside runs a keeper in the namespaces of another, as the kubelet does. The end of the other may
// kill it before it has reported that it sent a signal.
func inside(t *testing.T, c *exec.Cmd, args ...string) error {
	t.Helper()
	pid := strconv.Itoa(c.Process.Pid)
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	require.NoError(t, err)
	out, err := exec.Command("nsenter", append([]string{"-t", strings.TrimSpace(string(children)), "-p", "-m"}, args...)...).CombinedOutput()
	if err == nil || err.Error() == "signal: killed" {
		return nil
	}
	return errors.Join(err, errors.New(string(out)))
}

func TestSignalReachesTheCommand(t *testing.T) {
	keeper := build(t)
	c, line := started(t, keeper, "run", "--", "sh", "-c", "trap 'echo hup' HUP; trap 'exit 7' INT; echo ready; while true; do sleep 0.05; done")
	require.NoError(t, inside(t, c, keeper, "signal", "SIGHUP"))
	require.Equal(t, "hup", line())
	require.Error(t, inside(t, c, keeper, "signal", "SIGNONSENSE"))
	require.NoError(t, inside(t, c, keeper, "signal", "SIGINT"))
	require.Equal(t, 7, code(t, c.Wait()))
}

// TestSignalReachesNoOrphan: a daemon of the command becomes a child of the keeper, too.
func TestSignalReachesNoOrphan(t *testing.T) {
	keeper := build(t)
	for range 5 { // any thread may start the command, or adopt the daemon
		c, _ := started(t, keeper, "run", "--", "sh", "-c", "(setsid sleep 1000 &); trap 'exit 7' INT; echo ready; while true; do sleep 0.05; done")
		require.NoError(t, inside(t, c, keeper, "signal", "SIGINT"))
		require.Equal(t, 7, code(t, c.Wait()))
	}
}

func TestKillReachesEveryProcess(t *testing.T) {
	keeper := build(t)
	c, _ := started(t, keeper, "run", "--", "sh", "-c", "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 1000\" & echo ready; sleep 1000")
	require.NoError(t, inside(t, c, keeper, "signal", "SIGKILL"))
	require.Equal(t, 137, code(t, c.Wait()))
}

func TestTermBecomesTheStopSignal(t *testing.T) {
	keeper := build(t)
	c, _ := started(t, keeper, "run", "-stop", "SIGINT", "--", "sh", "-c", "trap 'exit 7' INT; echo ready; while true; do sleep 0.05; done")
	require.NoError(t, inside(t, c, "kill", "-TERM", "1"))
	require.Equal(t, 7, code(t, c.Wait()))
}

func TestGroupSignalReachesTheChildrenOfTheCommand(t *testing.T) {
	keeper := build(t)
	c, line := started(t, keeper, "run", "--", "sh", "-c",
		"sh -c \"trap 'echo child; exit' HUP; echo ready; while true; do sleep 0.05; done\" & trap : HUP; wait; wait; sleep 1000")
	require.NoError(t, inside(t, c, keeper, "signal", "SIGHUP"))
	require.Equal(t, "child", line())
}

// game needs a while to save when it is asked to stop.
const game = `trap 'echo saving; sleep 0.3; echo saved; exit 7' TERM INT; echo ready; while true; do sleep 0.05; done
`

// TestSignalIsSurvivedByTheGame requires that a game saves whose shell, or whose reader, the signal ends.
func TestSignalIsSurvivedByTheGame(t *testing.T) {
	keeper, dir := build(t), t.TempDir()
	script := filepath.Join(dir, "game")
	require.NoError(t, os.WriteFile(script, []byte(game), 0o755)) // without #!
	for _, shell := range [][]string{{"dash"}, {"bash"}, {"busybox", "sh"}} {
		for _, command := range []string{"sh GAME; echo after", "sh GAME & wait", "cd . && sh GAME; true", "sh GAME | tee LOG", "sh GAME | cat | tee LOG", "sleep 1000 | sh GAME"} {
			for _, signal := range []string{"SIGTERM", "SIGINT"} {
				command := strings.NewReplacer("GAME", script, "LOG", filepath.Join(dir, "log")).Replace(command)
				c, line := started(t, append(append([]string{keeper, "run", "--"}, shell...), "-c", command)...)
				require.NoError(t, inside(t, c, keeper, "signal", signal))
				require.Equal(t, "saving", line(), "%v %s %s", shell, command, signal)
				require.Equal(t, "saved", line(), "%v %s %s", shell, command, signal)
				_ = c.Wait()
			}
		}
	}
	c, line := started(t, keeper, "run", "--", script)
	require.NoError(t, inside(t, c, keeper, "signal", "SIGTERM"))
	require.Equal(t, "saving", line())
	require.Equal(t, "saved", line())
	require.Equal(t, 7, code(t, c.Wait()))
}

// TestSignalReachesOtherGroups: a launcher gives its child a group, and ends with it.
func TestSignalReachesOtherGroups(t *testing.T) {
	keeper, dir := build(t), t.TempDir()
	script, start := filepath.Join(dir, "game"), filepath.Join(dir, "start")
	require.NoError(t, os.WriteFile(script, []byte(game), 0o755))
	require.NoError(t, os.WriteFile(start, []byte("sh "+script+"\n"), 0o755))
	for _, launcher := range []string{"tini -s -- sh " + start, "tini -s -g -- sh " + start, "bash -c 'set -m; sh " + start + "'"} {
		c, line := started(t, keeper, "run", "-wait", "10s", "--", "sh", "-c", "exec "+launcher)
		require.NoError(t, inside(t, c, keeper, "signal", "SIGTERM"))
		require.Equal(t, "saving", line(), launcher)
		require.Equal(t, "saved", line(), launcher)
		_ = c.Wait()
	}
}

// TestRestIsAwaitedAfterASignalOnly: what a command that exits by itself has left does not keep the
// container, and what ignores every signal keeps it for a time.
func TestRestIsAwaitedAfterASignalOnly(t *testing.T) {
	keeper := build(t)
	for _, command := range []string{"sleep 1000 & exit 3", "sleep 1000 & kill -KILL $$"} {
		err := inPidNamespace(keeper, "run", "-wait", "1h", "--", "sh", "-c", command).Run()
		require.NotZero(t, code(t, err))
	}
	c, _ := started(t, keeper, "run", "-wait", "100ms", "--", "sh", "-c", "(trap '' TERM; sleep 1000) & sleep 0.1; echo ready; sleep 1000")
	require.NoError(t, inside(t, c, keeper, "signal", "SIGTERM"))
	require.Equal(t, 137, code(t, c.Wait()), "the rest was killed")
}

// onTerminal runs a keeper whose command has a terminal, and returns its output and its exit code.
func onTerminal(t *testing.T, keeper string, command ...string) (output string, exit int) {
	t.Helper()
	engine, terminal, err := pty.Open()
	require.NoError(t, err)
	defer engine.Close()
	c := inPidNamespace(append([]string{"setsid", "--ctty", keeper, "run", "-wait", "100ms", "--"}, command...)...)
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	require.NoError(t, c.Start())
	late := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer late.Stop()
	terminal.Close()
	text, _ := io.ReadAll(engine) // it ends with an error when nobody has the terminal any more
	return string(text), code(t, c.Wait())
}

// TestSizeOfTheTerminal: the keeper sets the first size of a terminal, and does not take the SIGWINCH of that for a stop,
// after which it would wait for the processes that a command has left.
func TestSizeOfTheTerminal(t *testing.T) {
	output, exit := onTerminal(t, build(t), "sh", "-c", "sleep 1000 & sleep 0.3; stty size; exit 3")
	require.Equal(t, "40 120\r\n", output)
	require.Equal(t, 3, exit)
}

// TestCommandBeginsWithoutSignals: tini reports each signal that it gets before its child has a group.
func TestCommandBeginsWithoutSignals(t *testing.T) {
	keeper := build(t)
	for range 100 {
		output, exit := onTerminal(t, keeper, "tini", "-s", "-g", "--", "echo", "up")
		require.Equal(t, "up\r\n", output)
		require.Zero(t, exit)
	}
}

// TestStoppedCommandContinues: a command that has used the terminal before it was the foreground was stopped.
func TestStoppedCommandContinues(t *testing.T) {
	keeper := build(t)
	for _, signal := range []string{"TTIN", "TTOU"} {
		output, exit := onTerminal(t, keeper, "sh", "-c", "sleep 0.1; kill -"+signal+" $$; echo continued")
		require.Equal(t, "continued\r\n", output)
		require.Zero(t, exit)
	}
}

func TestZombiesAreReaped(t *testing.T) {
	keeper := build(t)
	c, line := started(t, keeper, "run", "--", "sh", "-c",
		"(sleep 0.1 & exec true); echo ready; sleep 0.5; grep -c '^State:.Z' /proc/[0-9]*/status | grep -c ':1$'; sleep 1000")
	require.Equal(t, "0", line())
	require.NoError(t, inside(t, c, keeper, "signal", "SIGKILL"))
	require.Equal(t, 137, code(t, c.Wait()))
}

// TestHold: the kubelet waits a moment, and until the container ends once its command was asked to exit in its
// own way.
func TestHold(t *testing.T) {
	keeper := build(t)
	c, _ := started(t, "sh", "-c", `mount -t tmpfs tmpfs /dev/shm; exec "$@"`, "sh", keeper, "run", "--",
		"sh", "-c", "echo ready; while ! test -e /dev/shm/exit; do sleep 0.05; done; exit 7")
	require.NoError(t, inside(t, c, keeper, "hold", "-wait", "50ms"))
	require.NoError(t, inside(t, c, keeper, "asked"))
	ended := make(chan error, 1)
	go func() { ended <- inside(t, c, keeper, "hold", "-wait", "20ms") }()
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	require.NoError(t, inside(t, c, "touch", "/dev/shm/exit"))
	require.Equal(t, 7, code(t, c.Wait()))
	require.NoError(t, <-ended)
}
