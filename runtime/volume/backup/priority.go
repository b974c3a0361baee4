package backup

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// The lowest priority of a thread.
const (
	nice          = 19
	ioprioProcess = 1       // a thread, as linux/ioprio.h has it
	ioprioIdle    = 3 << 13 // reads and writes when no other process does
)

// withLowPriority calls do on a thread of its own that has the lowest priority for
// processors and disks, as far as the host allows it. The thread ends with the call,
// because only a privileged process could raise its priority again. A panic of do becomes one
// of the caller.
func withLowPriority(do func()) {
	var failed any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				failed = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioProcess, 0, ioprioIdle)
		do()
	}()
	<-done
	if failed != nil {
		panic(failed)
	}
}
