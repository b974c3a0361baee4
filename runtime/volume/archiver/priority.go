package archiver

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// name is the name of the process in lists of processes, at most 15 bytes.
const name = "berth-archive"

// The lowest priority.
const (
	nice           = 19      // of the session and its threads
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
	threads(func(id int) {
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioProcess, uintptr(id), ioprioIdle)
	})
	setPolicy(fastPolicy)
}

// The policies of the threads. The kernel gives new work to a processor that runs only
// SCHED_IDLE threads, as to an idle one: good while this process keeps all of them busy, and
// bad while another one is really idle.
const (
	slowPolicy = unix.SCHED_BATCH
	fastPolicy = unix.SCHED_IDLE
)

// slice is how long a thread may run before another one takes its processor while this
// process pauses: the least that the kernel allows, instead of about 3 ms. Kernels before
// Linux 6.12 ignore it.
const slice = 100 * time.Microsecond

// setPolicy sets the policy of all threads.
func setPolicy(policy uint32) {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Nice: nice}
	if policy == slowPolicy {
		attr.Runtime = uint64(slice)
	}
	threads(func(id int) { _ = unix.SchedSetAttr(id, &attr, 0) })
}

// threads calls set with each thread of this process. A thread has attributes of its own, and
// those that it starts inherit them. When there is no new one, none was started before those
// of its parent were set.
func threads(set func(id int)) {
	seen := map[int]bool{}
	for found := true; found; {
		found = false
		list, _ := os.ReadDir("/proc/self/task")
		for _, t := range list {
			id, err := strconv.Atoi(t.Name())
			if err == nil && !seen[id] {
				seen[id], found = true, true
				set(id)
			}
		}
	}
}
