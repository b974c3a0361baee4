package docker

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"berth/runtime"
)

// groups are a process's control groups: directories by controller, or one
// under "" where there is the second version only.
type groups map[string]string

const cgroupRoot = "/sys/fs/cgroup"

// groupsOf finds the groups of a process. They must bear the container's id: a
// pid can belong to anybody by now.
func groupsOf(pid int, containerID string) (groups, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return nil, false
	}
	all := groups{}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !strings.Contains(parts[2], containerID) {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			all[controller] = filepath.Join(cgroupRoot, controller, parts[2])
		}
	}
	_, first := all["memory"]
	_, second := all[""]
	return all, first || second
}

func (g groups) stats(pid int) (s runtime.Stats, ok bool) {
	if memory, first := g["memory"]; first {
		s, ok = firstVersion(g, memory)
	} else {
		s, ok = secondVersion(g[""])
	}
	if s.MemoryLimit <= 0 || s.MemoryLimit > 1<<60 { // both versions' ways to say none
		s.MemoryLimit = hostMemory()
	}
	s.Read = time.Now()
	return s, ok && networkOf(pid, &s)
}

// firstVersion reads the files of control groups' first version.
func firstVersion(g groups, memory string) (s runtime.Stats, ok bool) {
	usage, ok := number(memory, "memory.usage_in_bytes")
	cache := keyed(memory, "memory.stat")["total_inactive_file"]
	cpu, seen := number(g["cpuacct"], "cpuacct.usage")
	s.CPU = time.Duration(cpu)
	s.Memory = without(cache, usage)
	s.MemoryLimit, _ = number(memory, "memory.limit_in_bytes")
	s.Pids, _ = number(g["pids"], "pids.current")
	s.BlockRead, s.BlockWrite = transferred(g["blkio"], "blkio.throttle.io_service_bytes_recursive")
	return s, ok && seen
}

// secondVersion reads the files of control groups' second version.
func secondVersion(dir string) (s runtime.Stats, ok bool) {
	usage, ok := number(dir, "memory.current")
	cache := keyed(dir, "memory.stat")["inactive_file"]
	cpu, seen := keyed(dir, "cpu.stat")["usage_usec"]
	s.CPU = time.Duration(cpu) * time.Microsecond
	s.Memory = without(cache, usage)
	s.MemoryLimit, _ = number(dir, "memory.max")
	s.Pids, _ = number(dir, "pids.current")
	s.BlockRead, s.BlockWrite = transferredSecond(dir)
	return s, ok && seen
}

func number(dir, file string) (n int64, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

// keyed reads a file with a name and a number on each line.
func keyed(dir, file string) map[string]int64 {
	all := map[string]int64{}
	each(filepath.Join(dir, file), func(words []string) {
		if len(words) == 2 {
			all[words[0]], _ = strconv.ParseInt(words[1], 10, 64)
		}
	})
	return all
}

// transferred adds up lines such as "8:0 Read 4096".
func transferred(dir, file string) (read, written int64) {
	each(filepath.Join(dir, file), func(words []string) {
		if len(words) != 3 {
			return
		}
		n, _ := strconv.ParseInt(words[2], 10, 64)
		switch words[1] {
		case "Read":
			read += n
		case "Write":
			written += n
		}
	})
	return read, written
}

// transferredSecond adds up lines such as "8:0 rbytes=4096 wbytes=0 rios=1".
func transferredSecond(dir string) (read, written int64) {
	each(filepath.Join(dir, "io.stat"), func(words []string) {
		for _, word := range words {
			name, value, _ := strings.Cut(word, "=")
			n, _ := strconv.ParseInt(value, 10, 64)
			switch name {
			case "rbytes":
				read += n
			case "wbytes":
				written += n
			}
		}
	})
	return read, written
}

// networkOf adds up the interfaces that a process sees, but the loopback.
func networkOf(pid int, s *runtime.Stats) bool {
	seen := false
	each("/proc/"+strconv.Itoa(pid)+"/net/dev", func(words []string) {
		if len(words) < 10 || !strings.HasSuffix(words[0], ":") {
			return
		}
		seen = true
		if words[0] == "lo:" {
			return
		}
		rx, _ := strconv.ParseInt(words[1], 10, 64)
		tx, _ := strconv.ParseInt(words[9], 10, 64)
		s.NetworkRx += rx
		s.NetworkTx += tx
	})
	return seen
}

// hostMemory is all of the host's, in bytes.
func hostMemory() (n int64) {
	each("/proc/meminfo", func(words []string) {
		if len(words) >= 2 && words[0] == "MemTotal:" {
			n, _ = strconv.ParseInt(words[1], 10, 64)
		}
	})
	return n * 1024
}

// each calls f with the words of each line of a file; none if it cannot be read.
func each(file string, f func(words []string)) {
	open, err := os.Open(file)
	if err != nil {
		return
	}
	defer open.Close()
	for lines := bufio.NewScanner(open); lines.Scan(); {
		f(strings.Fields(lines.Text()))
	}
}
