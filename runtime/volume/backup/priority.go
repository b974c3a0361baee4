package backup

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// The lowest priority of a thread.
const (
	nice          = 19
	ioprioProcess = 1       // a thread, as linux/ioprio.h has it
	ioprioIdle    = 3 << 13 // reads and writes when no other process does
)

// WithPriority calls do on a thread of its own, which with v1.LowPriority has the lowest priority for
// processors and disks, as far as the host allows it. The thread ends with the call,
// because only a privileged process could raise its priority again. A panic of do becomes an
// error that names its place: the recovery of a job does not reach this goroutine.
func WithPriority(p v1.Priority, do func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				done <- fmt.Errorf("panic: %v at %s", cause, placeOfPanic())
			}
		}()
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		if p == v1.LowPriority {
			_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
			_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioProcess, 0, ioprioIdle)
		}
		done <- do()
	}()
	return <-done
}

// threadTime returns the time of a core that this thread has taken.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // every Linux has this clock
	return time.Duration(t.Nano())
}

// placeOfPanic returns the function and the line of this module that panicked. A deferred function
// calls it.
func placeOfPanic() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // without Callers, this and the deferred function
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "berth/") || !more {
			return fmt.Sprintf("%s:%d", f.Function, f.Line)
		}
	}
}
