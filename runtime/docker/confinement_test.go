package docker

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/enginetest"
	"berth/runtime"
	"berth/runtime/keeper"
)

// forbidden prints the errors of io_uring_setup, which is 14 (EFAULT) if it is allowed, of three
// requests of ioctl for another project (the kernel ignores their upper half), and of one for the
// size of a terminal, for which a file answers 25 (ENOTTY).
const forbidden = `package main
import ("fmt"; "os"; "syscall"; "unsafe")
func main() {
	_, _, ring := syscall.Syscall(425, 1, 0, 0)
	f, _ := os.Create("/tmp/mine")
	var a [28]byte
	call := func(request uintptr) int {
		_, _, err := syscall.Syscall(16, f.Fd(), request, uintptr(unsafe.Pointer(&a)))
		return int(err)
	}
	fmt.Println("errno", int(ring), call(0x401c5820), call(0x1401c5820), call(0xffffffff401c5820), call(0x5413))
}`

// TestForbiddenCalls requires that no engine lets a container use an io_uring, which can keep
// deleted files where no measurement of disk usage finds them, or give its files to the project of
// another volume, whose hard limit they would use up.
func TestForbiddenCalls(t *testing.T) {
	r, dir := newRig(t), t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/main.go", []byte(forbidden), 0o600))
	build := exec.Command("go", "build", "-o", dir+"/program", dir+"/main.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = t.Output()
	require.NoError(t, build.Run())
	s := r.spec("calls", "")
	s.Command, s.Mounts = []string{"/calls/program"}, []runtime.Mount{{Source: dir, Target: "/calls", ReadOnly: true}}
	require.Equal(t, []string{"errno 1 1 1 1 25"}, joinLines(r.read(t, r.run(t, s), time.Time{}, true)), "1 is EPERM")
}

// TestStoredCPULimit requires that a limit above the processors of the host, as a spec has
// that was stored on a larger one, does not keep a container from being created.
func TestStoredCPULimit(t *testing.T) {
	r := newRig(t)
	s := r.spec("cpus", "sleep 1000")
	s.Live.CPU = 4000
	r.run(t, s)
	got, err := r.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.Less(t, got.Live.CPU, 4000.0)
	require.NoError(t, r.Update(t.Context(), s.Name, runtime.Live{CPU: 4000}))
}

// TestConnect requires that a container that has run starts again after its network was
// removed, and that one that was disconnected while it runs is connected again, with its
// ports.
func TestConnect(t *testing.T) {
	c := enginetest.Shared(t)
	name := "berth-test-connect"
	r := newRig(t, func(c *Config) { c.Network = name })
	t.Cleanup(func() {
		r.client.CleanStore(t, r.cfg.StoreID)
		c.Must(t, http.MethodDelete, "/networks/"+name, nil)
	})
	s := r.spec("net", "nc -ll -p 7777 -e echo hello")
	port, free := listen(t, 0)
	free()
	s.Ports = []runtime.Port{{IP: "127.0.0.1", Port: port, ContainerPort: 7777, Protocol: "tcp"}}
	id := r.run(t, s)
	published := func(want bool) {
		t.Helper()
		got, err := r.Inspect(t.Context(), s.Name)
		require.NoError(t, err)
		require.Equal(t, !want, got.Detached)
		one, _ := c.Inspect(t, id)
		ports, _ := one.Raw["NetworkSettings"].(map[string]any)["Ports"].(map[string]any)
		require.Equal(t, want, ports["7777/tcp"] != nil, ports)
	}
	published(true)
	require.NoError(t, r.Kill(t.Context(), s.Name))
	c.Must(t, http.MethodDelete, "/networks/"+name, nil)
	require.NoError(t, r.Start(t.Context(), s.Name), "its network was removed")
	published(true)

	c.Must(t, http.MethodPost, "/networks/"+name+"/disconnect", map[string]any{"Container": id})
	published(false)
	require.NoError(t, r.Connect(t.Context(), s.Name))
	published(true)
}

// TestProbe requires that a probe returns what the engine refuses, and leaves nothing.
func TestProbe(t *testing.T) {
	r := newRig(t)
	s := r.spec("probed", "sleep 1000")
	id := r.run(t, s)
	require.NoError(t, r.Probe(t.Context(), s))
	for _, change := range []func(*runtime.Spec){
		func(s *runtime.Spec) { s.Live.Memory = 1 << 20 },
		func(s *runtime.Spec) { s.Live.Cpuset = "4000" },
	} {
		bad := s
		change(&bad)
		require.ErrorIs(t, r.Probe(t.Context(), bad), runtime.ErrInvalid)
	}
	probe := r.realName(runtime.Name{ID: s.Name.ID, Role: "probe"})
	leave := func() string {
		return r.client.CreateRaw(t, probe, map[string]any{"Image": r.image, "Labels": map[string]string{"io.berth.store": r.cfg.StoreID, "io.berth.role": "probe"}})
	}
	left := leave()
	require.ErrorIs(t, r.Probe(t.Context(), s), runtime.ErrUnavailable)
	require.NoError(t, r.Probe(t.Context(), s))
	_, found := r.client.Inspect(t, left)
	require.False(t, found)
	_, found = r.client.Inspect(t, probe)
	require.False(t, found)
	one, _ := r.client.Inspect(t, id)
	require.True(t, one.State.Running)

	left = leave()
	_, err := r.twin(t).List(t.Context())
	require.NoError(t, err)
	_, found = r.client.Inspect(t, left)
	require.False(t, found, "a probe of a daemon that was killed")
}

// TestProbeTakesNoName: no container's id makes it another one's probe.
func TestProbeTakesNoName(t *testing.T) {
	r := newRig(t)
	s := r.spec("mc", "sleep 1000")
	r.run(t, s)
	for _, id := range []string{"mc-probe", "probe-mc", "probe"} {
		other := r.run(t, r.spec(id, "sleep 1000"))
		require.NoError(t, r.Probe(t.Context(), s))
		one, _ := r.client.Inspect(t, other)
		require.True(t, one.State.Running, id)
	}
}

// TestMachineID requires that the id of a container is written at its creation.
func TestMachineID(t *testing.T) {
	r := newRig(t)
	s := r.spec("machine", "cat /etc/machine-id; ls -l /etc/machine-id | cut -c1-10")
	s.MachineID = strings.Repeat("ab", 16)
	require.Equal(t, []string{s.MachineID, "-r--r--r--"}, joinLines(r.read(t, r.run(t, s), time.Time{}, true)))
}

// TestTerminalSize requires 120 columns and 40 rows at the start, and a size that a client sets.
func TestTerminalSize(t *testing.T) {
	r := newRig(t)
	s := r.spec("terminal", "stty size; while ! stty size | grep -q '^50 '; do sleep 0.1; done; stty size")
	s.TTY = true
	id := r.run(t, s)
	lines := func() (lines []string) {
		require.NoError(t, r.Logs(t.Context(), runtime.Target{ContainerID: id, Ended: true, TTY: true}, time.Time{}, func(l runtime.Line) error {
			lines = append(lines, strings.TrimSuffix(string(l.Data), "\r"))
			return nil
		}))
		return lines
	}
	require.Eventually(t, func() bool { return len(lines()) == 1 }, time.Minute, 50*time.Millisecond)
	require.NoError(t, r.Resize(t.Context(), id, 100, 50))
	require.Eventually(t, func() bool { return len(lines()) == 2 }, time.Minute, 50*time.Millisecond)
	require.Equal(t, []string{"40 120", "50 100"}, lines())
}

// TestInputOfTerminal requires that no keys end an input, and TestInputIsNotRead that a
// container that reads nothing is reported as such.
func TestInputOfTerminal(t *testing.T) {
	r := newRig(t)
	s := r.spec("keys", "stty raw -echo; echo ready; head -c 6 | od -An -tx1; sleep 1000")
	s.TTY = true
	id := r.run(t, s)
	lines := make(chan string, 10)
	go func() {
		_ = r.Logs(t.Context(), runtime.Target{ContainerID: id, TTY: true}, time.Time{}, func(l runtime.Line) error {
			lines <- strings.TrimSpace(string(l.Data))
			return nil
		})
	}()
	require.Equal(t, "ready", <-lines)
	require.NoError(t, r.Input(t.Context(), id, []byte("a\x10\x11bc\n")))
	require.Equal(t, "61 10 11 62 63 0a", <-lines)
}

func TestInputIsNotRead(t *testing.T) {
	t.Parallel() // it waits for the limit of an input
	r := newRig(t)
	id := r.run(t, r.spec("deaf", "sleep 1000"))
	began := time.Now()
	require.ErrorIs(t, r.Input(t.Context(), id, make([]byte, 1<<20)), runtime.ErrInputFull)
	require.Less(t, time.Since(began), 30*time.Second)
}

// TestInstallerReadsNothing requires that an installer that reads its input is not blocked.
func TestInstallerReadsNothing(t *testing.T) {
	r := newRig(t)
	s := r.spec("asks", "read answer; echo end of file")
	s.Name.Role = runtime.Install
	require.Equal(t, []string{"end of file"}, joinLines(r.read(t, r.run(t, s), time.Time{}, true)))
}

// TestSignalGroup requires that a signal reaches the command and its children.
func TestSignalGroup(t *testing.T) {
	r := newRig(t)
	s := r.spec("group", "trap 'wait; exit 3' TERM; (trap 'echo child; exit' TERM; echo up; while true; do sleep 0.1; done) & wait; wait; exit 4")
	id := r.run(t, s)
	up := make(chan struct{})
	go func() {
		_ = r.Logs(t.Context(), runtime.Target{ContainerID: id}, time.Time{}, func(l runtime.Line) error {
			if string(l.Data) == "up" {
				close(up)
			}
			return nil
		})
	}()
	<-up
	require.NoError(t, r.Signal(t.Context(), s.Name, "TERM"))
	require.Contains(t, joinLines(r.read(t, id, time.Time{}, true)), "child")
}

// TestRemoveImage requires that an image stays from which a container exists, or that has
// another name, and that no other error is returned for one that is not there.
func TestRemoveImage(t *testing.T) {
	r := newRig(t)
	ref := "berth-test/removed-" + r.cfg.StoreID + ":1"
	id := func(ref string) string {
		id, err := r.ImageID(t.Context(), ref)
		require.NoError(t, err)
		return id
	}
	r.client.Import(t, ref, enginetest.BusyboxTar(t, map[string][]byte{"unique": []byte(ref)}))
	s := r.spec("image", "true")
	s.Image = ref
	r.run(t, s)
	own := id(ref)
	require.ErrorIs(t, r.RemoveImage(t.Context(), own, ref), runtime.ErrImageInUse)
	require.NoError(t, r.Kill(t.Context(), s.Name))
	require.NoError(t, r.Remove(t.Context(), s.Name))
	require.NoError(t, r.RemoveImage(t.Context(), own, "berth-test/another:1"))
	require.Equal(t, own, id(ref), "it has another name")
	require.NoError(t, r.RemoveImage(t.Context(), own, ref))
	require.Empty(t, id(ref))
	require.NoError(t, r.RemoveImage(t.Context(), own, ref))
}

// TestWorkdirIsALink requires that no container is created whose working directory is a link of
// the image to a handle of the process that starts it.
func TestWorkdirIsALink(t *testing.T) {
	r := newRig(t)
	base := "berth-test/links-" + r.cfg.StoreID + ":1"
	made := r.client.CreateRaw(t, "berth-test-links", map[string]any{"Image": r.image, "Cmd": []string{"sh", "-c",
		"ln -s /proc/self/fd/8 /direct; mkdir /deep; ln -s ../direct /deep/link; ln -s /tmp /harmless"}})
	defer r.client.Remove(t, made)
	require.Equal(t, 204, r.client.Act(t, made, "start"))
	require.Equal(t, 200, r.client.Act(t, made, "wait"))
	r.client.Must(t, http.MethodPost, "/commit?container="+made+"&repo="+strings.TrimSuffix(base, ":1")+"&tag=1", map[string]any{})
	t.Cleanup(func() { r.client.RemoveImage(t, base) })
	for dir, refused := range map[string]bool{"/direct": true, "/deep/link": true, "/direct/.": true, "/harmless": false, "/deep": false} {
		s := r.spec("link"+strings.NewReplacer("/", "-", ".", "x").Replace(dir), "pwd")
		s.Image, s.Workdir = base, dir
		probed := r.Probe(t.Context(), s)
		_, err := r.Create(t.Context(), s)
		if !refused {
			require.NoError(t, errors.Join(probed, err, r.Remove(t.Context(), s.Name)), dir)
			continue
		}
		require.ErrorIs(t, probed, runtime.ErrInvalid, dir)
		require.ErrorIs(t, err, runtime.ErrInvalid, dir)
		_, err = r.Inspect(t.Context(), s.Name)
		require.ErrorIs(t, err, runtime.ErrNotFound, dir)
	}
}

// TestAccount requires that the user of a container is known by number and by name.
func TestAccount(t *testing.T) {
	r := newRig(t)
	for user, want := range map[string]runtime.Account{
		"": {}, "root": {}, "player": {UID: 1000, GID: 1000}, "1000": {UID: 1000, GID: 1000}, "77": {UID: 77}, "77:88": {UID: 77, GID: 88}, "player:5": {UID: 1000, GID: 5},
	} {
		s := r.spec("account-"+strings.ReplaceAll(user, ":", "-")+"-", "true")
		s.User = user
		_, err := r.Create(t.Context(), s)
		require.NoError(t, err, user)
		got, err := r.Account(t.Context(), s.Name)
		require.NoError(t, err, user)
		require.Equal(t, want, got, user)
	}
}

// TestHome requires that a user without an account in the image has a home, and no other loses
// the one that it has.
func TestHome(t *testing.T) {
	r := newRig(t)
	for user, want := range map[string]string{"": "/root", "player": "/home/container", "77": "/volume", "77:88 ": "/set"} {
		s := r.spec("home-"+strings.ReplaceAll(strings.TrimSpace(user), ":", "-")+"-", "echo $HOME")
		s.User, s.Home = strings.TrimSpace(user), "/volume"
		if want == "/set" {
			s.Env = []string{"HOME=/set"}
		}
		require.Equal(t, []string{want}, joinLines(r.read(t, r.run(t, s), time.Time{}, true)), user)
		id, err := r.Create(t.Context(), s)
		require.NoError(t, err)
		again, err := r.Create(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, id, again, "it is adopted")
	}
}

// TestWorkdirOfTheImage requires that a container without a directory of its own is in that of its image, or
// in its home, and that no image leads to a handle of the process that starts it.
func TestWorkdirOfTheImage(t *testing.T) {
	r := newRig(t)
	for dir, want := range map[string]string{"/opt/game": "/opt/game", "": "/home/container", "/proc/self/fd/8": "", "/./sys": ""} {
		ref := "berth-test/workdir-" + r.cfg.StoreID + ":" + strings.NewReplacer("/", "-", ".", "x").Replace("i"+dir)
		changes := []string{`CMD ["pwd"]`}
		if dir != "" {
			changes = append(changes, "WORKDIR "+dir)
		}
		r.client.Import(t, ref, enginetest.BusyboxTar(t, nil), changes...)
		t.Cleanup(func() { r.client.RemoveImage(t, ref) })
		s := r.spec("workdir"+strings.NewReplacer("/", "-", ".", "x").Replace(dir), "")
		s.Image, s.Command, s.Home = ref, nil, "/home/container"
		if want == "" {
			_, err := r.Create(t.Context(), s)
			require.ErrorIs(t, errors.Join(err, r.Probe(t.Context(), s)), runtime.ErrInvalid, dir)
			require.ErrorContains(t, err, "set a workdir")
			s.Workdir, want = "/tmp", "/tmp"
		}
		require.Equal(t, []string{want}, joinLines(r.read(t, r.run(t, s), time.Time{}, true)), dir)
	}
}

// TestFewProcesses requires that a container may have as many processes as its limit, beside the threads of
// its first process, and that it starts with the least limit.
func TestFewProcesses(t *testing.T) {
	r := newRig(t)
	for _, limit := range []int64{1, 2, 8} {
		s := r.spec(fmt.Sprint("few", limit), `while read key value; do [ "$key" != Threads: ] || echo $value; done < /proc/1/status`)
		s.Live.Pids = limit
		lines := joinLines(r.read(t, r.run(t, s), time.Time{}, true))
		require.Len(t, lines, 1, limit)
		threads, err := strconv.Atoi(lines[0])
		require.NoError(t, err)
		require.LessOrEqual(t, threads, keeper.Pids)
		state, err := r.Inspect(t.Context(), s.Name)
		require.NoError(t, err)
		require.Equal(t, limit, state.Live.Pids)
		require.Zero(t, state.ExitCode)
	}
}

// TestImageCannotAccuseTheHost requires that an image in which the first process cannot be reached is not
// reported as a host that cannot start any container.
func TestImageCannotAccuseTheHost(t *testing.T) {
	r := newRig(t)
	for name, script := range map[string]string{"link": "ln -s /tmp /.berth", "out": "ln -s /nowhere/../.. /.berth"} {
		base := "berth-test/accuse-" + name + r.cfg.StoreID + ":1"
		made := r.client.CreateRaw(t, "berth-test-accuse-"+name, map[string]any{"Image": r.image, "Cmd": []string{"sh", "-c", script}})
		defer r.client.Remove(t, made)
		require.Equal(t, 204, r.client.Act(t, made, "start"))
		require.Equal(t, 200, r.client.Act(t, made, "wait"))
		r.client.Must(t, http.MethodPost, "/commit?container="+made+"&repo="+strings.TrimSuffix(base, ":1")+"&tag=1", map[string]any{})
		t.Cleanup(func() { r.client.RemoveImage(t, base) })
		s := r.spec("accuse-"+name, "true")
		s.Image, s.User = base, "1000"
		for _, known := range []bool{false, true} { // whether the engine sees the directory of berth
			r.shared.Store(known)
			_, err := r.Create(t.Context(), s)
			if err == nil {
				err = r.Start(t.Context(), s.Name)
			}
			require.NotErrorIs(t, err, runtime.ErrHost, name)
			require.NoError(t, errors.Join(r.Kill(t.Context(), s.Name), r.Remove(t.Context(), s.Name)))
		}
	}
}
