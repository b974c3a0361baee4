package archiver

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// name is the name of the process in lists of processes, at most 15 bytes.
const name = "berth-archive"

// The lowest priority.
const (
	nice           = 19      // of the session
	ioprioProcess  = 1       // a thread, as linux/ioprio.h has it
	ioprioIdle     = 3 << 13 // reads and writes when no other process does
	oomScoreAdjust = "/proc/self/oom_score_adj"
)

// lowerPriority gives this process the lowest priority for processors and disks, and
// withdraws the daemon's protection when memory runs out. All of it is as the host allows:
// a backup at the usual priority is better than none.
func lowerPriority() {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
	if adj, err := os.ReadFile(oomScoreAdjust); err == nil && bytes.HasPrefix(adj, []byte("-")) {
		_ = os.WriteFile(oomScoreAdjust, []byte("0"), 0)
	}
	// The kernel first shares processors between sessions (sched_autogroup), so the policy of a
	// thread has no part in what other sessions get. The nice value of the session has.
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0)
	// A thread has a priority of its own, and those that it starts inherit it. When there
	// is no new one, none was started before its parent's priority was lowered.
	lowered := map[int]bool{}
	for lowerThreads(lowered) {
	}
}

// lowerThreads lowers the priority of the threads that are not in lowered, and adds them.
// It reports whether there were any.
func lowerThreads(lowered map[int]bool) (found bool) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil || lowered[id] {
			continue
		}
		lowered[id], found = true, true
		// A processor that runs only threads with SCHED_IDLE takes new work as an idle one does.
		_ = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioProcess, uintptr(id), ioprioIdle)
	}
	return found
}
