package runtime_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/runtime"
)

// TestKernelResources: what containers share is named before it is used up, without what is reserved for the host.
func TestKernelResources(t *testing.T) {
	proc := t.TempDir()
	write := func(file, text string) {
		path := filepath.Join(proc, "sys", file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	}
	require.NoError(t, runtime.KernelResources(proc), "nothing can be read")
	write("kernel/pty/max", "4096")
	write("kernel/pty/reserve", "1024")
	write("kernel/pty/nr", "2303")
	write("fs/aio-nr", "0")
	write("fs/aio-max-nr", "65536")
	write("fs/file-nr", "6323\t0\t9223372036854775807")
	require.NoError(t, runtime.KernelResources(proc))
	write("kernel/pty/nr", "2304")
	write("fs/aio-nr", "65000")
	require.EqualError(t, runtime.KernelResources(proc),
		"2304 of 3072 terminals of containers are in use: stop the container that has most, or raise kernel.pty.max\n"+
			"65000 of 65536 requests for asynchronous I/O are in use: stop the container that has most, or raise fs.aio-max-nr")
}

// TestInotify: the last instances of a user are missed before they are used up. The test uses up those of a
// user namespace of its own.
func TestInotify(t *testing.T) {
	if os.Getenv("BERTH_TEST_INOTIFY") != "" {
		require.NoError(t, os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("10"), 0o600))
		require.NoError(t, runtime.Inotify())
		for range 3 {
			_, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			require.NoError(t, err)
		}
		require.ErrorContains(t, runtime.Inotify(), "fs.inotify.max_user_instances")
		_, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		require.NoError(t, err, "some are left")
		return
	}
	own := exec.Command(os.Args[0], "-test.run=^TestInotify$")
	own.Env = append(os.Environ(), "BERTH_TEST_INOTIFY=1")
	own.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	out, err := own.CombinedOutput()
	require.NoError(t, err, string(out))
}
