// Package browsertest starts Chromium for tests.
package browsertest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"unsafe"

	"github.com/chromedp/chromedp"
	"golang.org/x/sys/unix"
)

// program is the variable with the path of the browser that runs in place of the tests.
const program = "BERTH_TEST_BROWSER"

// Main is to be called at the beginning of TestMain. It does not return in a process that Options starts as the browser.
func Main() {
	if path := os.Getenv(program); path != "" {
		fmt.Fprintln(os.Stderr, path, execWithoutNetlink(path))
		os.Exit(1)
	}
}

// Options returns what chromedp.NewExecAllocator needs to start Chromium with a folder for its data. chromium is the path of
// hack/chromium.sh, which installs it if it is missing.
func Options(chromium, data string) ([]chromedp.ExecAllocatorOption, error) {
	path, err := exec.Command(chromium).Output()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	return append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(self), chromedp.Env(program+"="+strings.TrimSpace(string(path))),
		chromedp.NoSandbox, chromedp.UserDataDir(data)), err
}

// execWithoutNetlink runs a browser in place of this process that receives no events of network interfaces. Chromium aborts every
// request when the host gets or loses one, as with each container that another test starts.
func execWithoutNetlink(path string) error {
	runtime.LockOSThread()       // the filter is that of the thread
	const number, family = 0, 16 // offsets in struct seccomp_data: of the system call, and of its first argument
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: family},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_NETLINK, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	code := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&code)), 0, 0)
	}
	if err == nil {
		err = unix.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ())
	}
	return err
}
