package cgroup

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const held = 1 << 20

// ownReader returns a Reader that sees this process as a container.
func ownReader(t *testing.T) *Reader {
	t.Helper()
	cgroups, _ := host(t, map[string]string{"cgroup/memory/docker/" + id + "/cgroup.procs": fmt.Sprintf("0\n%d\n", os.Getpid())})
	return newReader(cgroups, "/proc", nil)
}

// unlinkedFile returns an open, deleted file of 1 MiB.
func unlinkedFile(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	_, err = f.Write(make([]byte, held))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, os.Remove(f.Name()))
	return f
}

func count(t *testing.T, r *Reader) int64 {
	t.Helper()
	n, err := r.Unlinked(context.Background(), id)
	require.NoError(t, err)
	return n.Bytes
}

// TestUnlinkedFilesCount tests files that are open, open twice, mapped, or open in one
// thread.
func TestUnlinkedFilesCount(t *testing.T) {
	r, dir := ownReader(t), t.TempDir()
	before := count(t, r)
	f := unlinkedFile(t, dir)
	twice, err := unix.Dup(int(f.Fd()))
	require.NoError(t, err)
	require.EqualValues(t, held, count(t, r)-before, "once")

	mapped, err := unix.Mmap(twice, 0, held, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, unix.Close(twice))
	require.NoError(t, f.Close())
	require.EqualValues(t, held, count(t, r)-before, "mapped alone")
	require.NoError(t, unix.Munmap(mapped))
	require.Equal(t, before, count(t, r))

	named, err := os.Create(filepath.Join(dir, "f (deleted)"))
	require.NoError(t, err)
	defer named.Close()
	_, err = named.Write(make([]byte, held))
	require.NoError(t, err)
	memory, err := unix.MemfdCreate("m", 0)
	require.NoError(t, err)
	defer unix.Close(memory)
	_, err = unix.Write(memory, make([]byte, held))
	require.NoError(t, err)
	require.Equal(t, before, count(t, r), "neither a name with the suffix, nor memory")
}

func TestThreadHandlesCount(t *testing.T) {
	r, dir := ownReader(t), t.TempDir()
	before := count(t, r)
	opened, end, ended := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // and never unlocked: the thread ends with its handles
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			opened <- err
			return
		}
		fd, err := unix.Open(filepath.Join(dir, "g"), unix.O_CREAT|unix.O_RDWR, 0o600)
		if err == nil {
			_, err = unix.Write(fd, make([]byte, held))
		}
		if err == nil {
			err = unix.Fsync(fd)
		}
		if err == nil {
			err = unix.Unlink(filepath.Join(dir, "g"))
		}
		opened <- err
		<-end
		_ = unix.Close(fd)
	}()
	require.NoError(t, <-opened)
	require.EqualValues(t, held, count(t, r)-before)
	close(end)
	<-ended
}

// TestMappingsOfAnEndedFirstThread requires that the mapped files of a process count although
// its first thread, whose mappings /proc shows for the process, has ended.
func TestMappingsOfAnEndedFirstThread(t *testing.T) {
	if dir := os.Getenv("BERTH_TEST_MAPS_IN"); dir != "" {
		mapAndEndFirstThread(dir)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestMappingsOfAnEndedFirstThread$")
	child.Env = append(os.Environ(), "BERTH_TEST_MAPS_IN="+t.TempDir())
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
	})
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	maps := fmt.Sprintf("/proc/%d/maps", child.Process.Pid)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(maps)
		return err == nil && len(text) == 0
	}, time.Minute, time.Millisecond, "the first thread has ended")
	cgroups, _ := host(t, map[string]string{"cgroup/memory/docker/" + id + "/cgroup.procs": fmt.Sprintf("%d\n", child.Process.Pid)})
	require.GreaterOrEqual(t, count(t, newReader(cgroups, "/proc", nil)), int64(held))
}

// mapAndEndFirstThread maps a deleted file, closes it, and ends the first thread of the process.
func mapAndEndFirstThread(dir string) {
	fd, err := unix.Open(filepath.Join(dir, "m"), unix.O_CREAT|unix.O_RDWR, 0o600)
	if err == nil {
		_, err = unix.Write(fd, make([]byte, held))
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	if err == nil {
		_, err = unix.Mmap(fd, 0, held, unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		panic(err)
	}
	_ = unix.Unlink(filepath.Join(dir, "m"))
	_ = unix.Close(fd)
	fmt.Println("mapped")
	for {
		go func() {
			runtime.LockOSThread()
			if unix.Gettid() == unix.Getpid() {
				_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
			}
			time.Sleep(time.Hour)
		}()
		time.Sleep(time.Millisecond)
	}
}

func TestUnlinkedUnknownContainer(t *testing.T) {
	n, err := newReader(t.TempDir(), "/proc", nil).Unlinked(t.Context(), id)
	require.NoError(t, err)
	require.Zero(t, n)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = ownReader(t).Unlinked(ended, id)
	require.ErrorIs(t, err, context.Canceled)
}

// TestScansAllocateLittle tests that a scan allocates no large buffer for each file that it
// reads: a round over all containers reads hundreds of them.
func TestScansAllocateLittle(t *testing.T) {
	r := ownReader(t)
	count(t, r)
	const scans = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range scans {
		count(t, r)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/scans, uint64(96<<10), "bytes of one scan")
}

// TestHandlesInFlight: handles that were sent and not received are counted, once for each socket, also those
// of a connection that nobody has accepted.
func TestHandlesInFlight(t *testing.T) {
	r := ownReader(t)
	flight := func() int {
		n, err := r.Unlinked(t.Context(), id)
		require.NoError(t, err)
		return n.InFlight
	}
	require.Zero(t, flight())
	f := unlinkedFile(t, t.TempDir())
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	send := func(socket int) {
		require.NoError(t, unix.Sendmsg(socket, []byte("x"), unix.UnixRights(int(f.Fd()), int(f.Fd())), nil, 0))
	}
	send(pair[0])
	twice, err := unix.Dup(pair[1])
	require.NoError(t, err)
	require.Equal(t, 2, flight())
	for _, fd := range []int{pair[0], pair[1], twice} {
		require.NoError(t, unix.Close(fd))
	}
	require.Eventually(t, func() bool { return flight() == 0 }, time.Minute, time.Millisecond)

	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(listener)
	address := &unix.SockaddrUnix{Name: "@berth-test-" + id}
	require.NoError(t, unix.Bind(listener, address))
	require.NoError(t, unix.Listen(listener, 1))
	client, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Connect(client, address))
	send(client)
	require.NoError(t, unix.Close(client))
	require.Equal(t, 2, flight())
}
