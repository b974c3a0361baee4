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

// Isolated is an engine of a test's own: own data, own socket, own containerd,
// own network namespace. Ports of its containers are published in that
// namespace only. It and its containers end with the test.
//
// It is the machine's dockerd, or that of the folder BERTH_ENGINE_ROOT.
type Isolated struct {
	*Client
	dir     string // short: paths of sockets are at most 107 bytes
	Netns   string // the name of its network namespace
	options []string
	root    *root // nil: the machine's programs
	cmd     *exec.Cmd
	exited  chan struct{} // closed when cmd has ended
}

// StartIsolated starts an engine. Options are dockerd's, such as "--live-restore".
func StartIsolated(t testing.TB, options ...string) *Isolated {
	t.Helper()
	return StartIsolatedOf(t, os.Getenv("BERTH_ENGINE_ROOT"), options...)
}

// StartIsolatedOf starts the engine of a folder, see Root. Empty is the machine's.
func StartIsolatedOf(t testing.TB, root string, options ...string) *Isolated {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "be")
	if err != nil {
		t.Fatal(err)
	}
	i := &Isolated{Client: NewClient(filepath.Join(dir, "s")), dir: dir, Netns: filepath.Base(dir), options: options}
	command(t, "ip", "netns", "add", i.Netns)
	t.Cleanup(func() { i.clean(t) })
	command(t, "nsenter", "--net=/run/netns/"+i.Netns, "ip", "link", "set", "lo", "up")
	i.Use(t, root)
	i.Start(t)
	t.Logf("own engine: Docker %s", i.Version(t))
	return i
}

// Use sets the folder whose dockerd the next Start starts, on the same socket
// and data; see Root. An empty path is the machine's own. No engine may run.
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

// Start starts the engine again after Kill9 or Terminate, and waits until it answers.
func (i *Isolated) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(i.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// nsenter and not "ip netns exec", which hides the control groups.
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
			t.Logf("own engine's log:\n%s", i.Log(t))
		}
	}()
	until(t, 3*time.Minute, "own engine answers", func() bool {
		if i.ended() {
			t.Fatal("own engine ended")
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

// Kill9 kills dockerd and its containerd. Containers run on, and are there
// again after Start with --live-restore; without it they end at Start.
func (i *Isolated) Kill9(t testing.TB) {
	t.Helper()
	i.signal(t, unix.SIGKILL)
	<-i.exited
	i.forgetPids(t)
}

// Terminate ends dockerd in good order. Without --live-restore its containers end.
func (i *Isolated) Terminate(t testing.TB) {
	t.Helper()
	i.signal(t, unix.SIGTERM)
	<-i.exited
}

// Freeze stops dockerd, and containerd with it, so that nothing is answered until Thaw.
func (i *Isolated) Freeze(t testing.TB) {
	t.Helper()
	i.signal(t, unix.SIGSTOP)
	i.signalContainerd(t, unix.SIGSTOP)
}

// FreezeContainerd stops containerd alone: pings and lists are still answered.
func (i *Isolated) FreezeContainerd(t testing.TB) {
	t.Helper()
	i.signalContainerd(t, unix.SIGSTOP)
}

// Thaw ends Freeze and FreezeContainerd.
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
		t.Fatalf("own engine: %v", err)
	}
}

func (i *Isolated) containerdPidFile() string { return i.dir + "/exec/containerd/containerd.pid" }

// containerd returns the pid of containerd, 0 if there is none of ours.
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
		t.Fatal("own engine: no containerd")
	}
	if err := unix.Kill(pid, s); err != nil {
		t.Fatalf("own containerd: %v", err)
	}
}

// forgetPids ends containerd and removes both pid files, which would keep a
// next engine from starting.
func (i *Isolated) forgetPids(t testing.TB) {
	t.Helper()
	if pid := i.containerd(); pid != 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
		until(t, 10*time.Second, "containerd ends", func() bool { return gone(pid) })
	}
	_ = os.Remove(i.containerdPidFile())
	_ = os.Remove(i.dir + "/pid")
}

// clean ends everything that the engine started, and nothing else.
func (i *Isolated) clean(t testing.TB) {
	t.Helper()
	if i.cmd != nil && !i.ended() {
		_ = i.cmd.Process.Signal(unix.SIGCONT)
		if pid := i.containerd(); pid != 0 {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
		_ = i.cmd.Process.Kill()
		<-i.exited
	}
	i.forgetPids(t)
	i.killShims(t)
	i.Use(t, "")
	i.unmount(t)
	command(t, "ip", "netns", "delete", i.Netns)
	if err := os.RemoveAll(i.dir); err != nil {
		t.Errorf("own engine: %v", err)
	}
}

func (i *Isolated) killShims(t testing.TB) {
	t.Helper()
	for _, pid := range i.leftovers(t) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	until(t, 10*time.Second, "what the engine started ends", func() bool { return len(i.leftovers(t)) == 0 })
}

// leftovers are the processes that are in this engine's network namespace, in
// a container of its, or carry its directory in their command line.
func (i *Isolated) leftovers(t testing.TB) (pids []int) {
	t.Helper()
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err == nil && pid != os.Getpid() && i.owns(pid) && !gone(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// owns tells whether a process was started by this engine. Processes of
// containers are known by their root, which lies in the engine's data.
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

// gone tells whether a process has ended, or only waits to be collected.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(state, "Z")
}

func command(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
