package enginetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Isolated is an engine that one test owns, with its own data, socket, containerd
// and network namespace. Ports of its containers are published only in that
// namespace. The engine and its containers end with the test.
//
// It runs the machine's dockerd, or that of the directory BERTH_ENGINE_ROOT.
type Isolated struct {
	*Client
	dir   string // short, because the path of a socket has at most 107 bytes
	Netns string // name of its network namespace
	// StopTimeout is how long Terminate waits. The default is that of systemd and
	// docker.service.
	StopTimeout time.Duration
	options     []string
	root        *root // nil: the machine's programs
	cmd         *exec.Cmd
	exited      chan struct{} // closed when cmd has ended
}

// StartIsolated starts an engine with options of dockerd, such as "--live-restore".
func StartIsolated(t testing.TB, options ...string) *Isolated {
	t.Helper()
	return StartIsolatedOf(t, os.Getenv("BERTH_ENGINE_ROOT"), options...)
}

// StartIsolatedOf starts the engine of a directory; see Root. An empty root means
// the machine's engine.
func StartIsolatedOf(t testing.TB, root string, options ...string) *Isolated {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "be")
	if err != nil {
		t.Fatal(err)
	}
	i := &Isolated{Client: NewClient(filepath.Join(dir, "s")), dir: dir, Netns: filepath.Base(dir), options: options,
		StopTimeout: 90 * time.Second}
	command(t, "ip", "netns", "add", i.Netns)
	t.Cleanup(func() { i.clean(t) })
	command(t, "nsenter", "--net=/run/netns/"+i.Netns, "ip", "link", "set", "lo", "up")
	i.Use(t, root)
	i.Start(t)
	t.Logf("isolated engine: Docker %s", i.Version(t))
	return i
}

// Use sets the directory whose dockerd the next Start runs, on the same socket
// and data; see Root. An empty path means the machine's dockerd. The engine must
// not run.
func (i *Isolated) Use(t testing.TB, path string) {
	t.Helper()
	if i.root != nil {
		i.root.leave()
	}
	i.root = nil
	if path != "" {
		i.root = enterRoot(t, path)
	}
}

// Start starts the engine, also after Kill9 or Terminate, and waits until it answers.
func (i *Isolated) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(i.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// "ip netns exec" would hide the control groups; nsenter does not.
	args := append([]string{"--net=/run/netns/" + i.Netns}, i.root.nsenter()...)
	args = append(args, "dockerd", "--host", i.Host(),
		"--data-root", i.dir+"/data", "--exec-root", i.dir+"/exec", "--pidfile", i.dir+"/pid")
	args = append(args, i.options...)
	cmd := exec.Command("nsenter", args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run hack/docker.sh", err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	i.cmd, i.exited = cmd, exited
	defer func() {
		if t.Failed() {
			t.Logf("log of the isolated engine:\n%s", i.Log(t))
		}
	}()
	Until(t, 3*time.Minute, "the isolated engine answers", func() bool {
		if i.ended() {
			t.Fatal("the isolated engine has exited")
		}
		return i.Ping(context.Background()) == nil
	})
}

// Pid returns the pid of dockerd.
func (i *Isolated) Pid() int { return i.cmd.Process.Pid }

// Log returns the end of dockerd's log.
func (i *Isolated) Log(t testing.TB) string {
	text, err := os.ReadFile(filepath.Join(i.dir, "log"))
	if err != nil {
		t.Error(err)
	}
	return string(text[max(0, len(text)-4000):])
}

// Kill9 kills dockerd and its containerd. Containers keep running. With
// --live-restore the next Start adopts them; without it, it ends them.
func (i *Isolated) Kill9(t testing.TB) {
	t.Helper()
	_ = i.cmd.Process.Kill() // fails only if it has exited
	Until(t, 3*time.Minute, "dockerd exits after SIGKILL", i.ended)
	i.removePidFiles(t)
}

// Terminate shuts dockerd down gracefully. Without --live-restore it stops its
// containers. As systemd does, it kills a dockerd that has not exited after
// StopTimeout.
func (i *Isolated) Terminate(t testing.TB) {
	t.Helper()
	i.signal(t, unix.SIGTERM)
	if Within(i.StopTimeout, i.ended) {
		return
	}
	i.signal(t, unix.SIGUSR1) // dockerd writes the stacks of its goroutines
	Within(5*time.Second, i.ended)
	t.Logf("dockerd is killed: it has not exited %s after SIGTERM; its log and stacks:\n%s\n%s", i.StopTimeout, i.Log(t),
		stacks(i.dir+"/exec"))
	i.Kill9(t)
}

// stacks returns what dockerd has written into its exec root at SIGUSR1.
func stacks(execRoot string) (text []byte) {
	files, _ := filepath.Glob(execRoot + "/goroutine-stacks-*.log")
	for _, path := range files {
		more, _ := os.ReadFile(path)
		text = append(text, more...)
	}
	return text
}

// Freeze suspends dockerd and containerd, so that the engine answers nothing until Thaw.
func (i *Isolated) Freeze(t testing.TB) {
	t.Helper()
	i.signal(t, unix.SIGSTOP)
	i.signalContainerd(t, unix.SIGSTOP)
}

// FreezeContainerd suspends only containerd: the engine still answers pings and lists.
func (i *Isolated) FreezeContainerd(t testing.TB) {
	t.Helper()
	i.signalContainerd(t, unix.SIGSTOP)
}

// Thaw resumes the processes that Freeze or FreezeContainerd has suspended.
func (i *Isolated) Thaw(t testing.TB) {
	t.Helper()
	i.signalContainerd(t, unix.SIGCONT)
	i.signal(t, unix.SIGCONT)
}

func (i *Isolated) ended() bool {
	select {
	case <-i.exited:
		return true
	default:
		return false
	}
}

func (i *Isolated) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := i.cmd.Process.Signal(s); err != nil {
		t.Fatalf("isolated engine: %v", err)
	}
}

func (i *Isolated) containerdPidFile() string { return i.dir + "/exec/containerd/containerd.pid" }

// containerd returns the pid of this engine's containerd, 0 if it does not run.
func (i *Isolated) containerd() int {
	text, err := os.ReadFile(i.containerdPidFile())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !strings.Contains(commandLine(pid), i.dir) {
		return 0
	}
	return pid
}

func (i *Isolated) signalContainerd(t testing.TB, s syscall.Signal) {
	t.Helper()
	pid := i.containerd()
	if pid == 0 {
		t.Fatal("isolated engine: containerd does not run")
	}
	if err := unix.Kill(pid, s); err != nil {
		t.Fatalf("containerd of the isolated engine: %v", err)
	}
}

// removePidFiles ends containerd and removes both pid files, which would prevent the
// next start.
func (i *Isolated) removePidFiles(t testing.TB) {
	t.Helper()
	if pid := i.containerd(); pid != 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
		Until(t, 3*time.Minute, "containerd ends", func() bool { return exited(pid) })
	}
	_ = os.Remove(i.containerdPidFile())
	_ = os.Remove(i.dir + "/pid")
}

// clean ends all processes that the engine started, and no others.
func (i *Isolated) clean(t testing.TB) {
	t.Helper()
	if i.cmd != nil && !i.ended() {
		_ = i.cmd.Process.Signal(unix.SIGCONT)
		if pid := i.containerd(); pid != 0 {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
		i.Kill9(t)
	}
	i.removePidFiles(t)
	i.killShims(t)
	i.Use(t, "")
	i.unmount(t)
	command(t, "ip", "netns", "delete", i.Netns)
	if err := os.RemoveAll(i.dir); err != nil {
		t.Errorf("isolated engine: %v", err)
	}
}

func (i *Isolated) killShims(t testing.TB) {
	t.Helper()
	for _, pid := range i.leftovers(t) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	Until(t, 3*time.Minute, "the processes of the engine end", func() bool { return len(i.leftovers(t)) == 0 })
}

// leftovers returns the processes in this engine's containers and those with its
// directory in their command line.
func (i *Isolated) leftovers(t testing.TB) (pids []int) {
	t.Helper()
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err == nil && pid != os.Getpid() && i.owns(pid) && !exited(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// owns reports whether this engine started a process. It recognises processes of
// containers by their root, which is in the engine's data directory.
func (i *Isolated) owns(pid int) bool {
	if strings.Contains(commandLine(pid), i.dir+"/") {
		return true
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(mounts), "\n")
	return strings.Contains(first, i.dir+"/data/")
}

func (i *Isolated) unmount(t testing.TB) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[1], i.dir+"/") {
			_ = unix.Unmount(words[1], unix.MNT_DETACH)
		}
	}
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(text)
}

// exited reports whether a process has exited. A zombie has.
func exited(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(state, "Z")
}

func command(t testing.TB, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
