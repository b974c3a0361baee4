package main

import (
	"bytes"
	"os"
	"time"
)

// survival is how long a run must go on after the kernel has killed one of its processes for its memory: then the
// kill is not the cause of its exit.
const survival = 5 * time.Second

// survived is the reason that the engine reads of an exit long after the last of those kills: containerd reports every
// exit after one as OOMKilled.
const survived = "went on after the kernel had killed a process for its memory"

// memory is when the kernel has last killed a process of the container for its memory.
type memory struct {
	files []string // that may have the number of kills; none: it does not matter
	kills string
	at    time.Time // of the look that has found the number; zero: none was killed
}

// newMemory returns the memory of a container. It matters in a pod alone, since Docker reports these kills itself, and
// only where the kernel does not kill all processes of a container together: the kubelet has it do so by default with
// version 2 of control groups.
func newMemory() *memory {
	together, _ := os.ReadFile("/sys/fs/cgroup/memory.oom.group")
	if _, err := os.Stat(terminationLog); err != nil || bytes.HasPrefix(together, []byte("1")) {
		return &memory{}
	}
	return &memory{files: []string{"/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"}}
}

// period returns the time between two looks.
func (m *memory) period() time.Duration {
	if len(m.files) == 0 {
		return time.Hour
	}
	return survival
}

// look reads the number of kills.
func (m *memory) look() {
	for _, file := range m.files {
		text, _ := os.ReadFile(file)
		for line := range bytes.Lines(text) {
			count, found := bytes.CutPrefix(bytes.TrimSpace(line), []byte("oom_kill "))
			if found && string(count) != "0" && string(count) != m.kills {
				m.kills, m.at = string(count), time.Now()
			}
		}
	}
}

// survived reports whether processes were killed, and the last of them long ago.
func (m *memory) survived() bool {
	m.look()
	return !m.at.IsZero() && time.Since(m.at) > survival
}
