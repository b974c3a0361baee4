package docker

import (
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"

	"berth/runtime"
)

// state converts the answer to an inspect.
func state(c container.InspectResponse) runtime.State {
	s := runtime.State{ContainerID: c.ID, ImageID: c.Image}
	if c.Config != nil {
		s.SpecHash, s.TTY, s.StopSignal = c.Config.Labels[labelSpec], c.Config.Tty, c.Config.StopSignal
		if c.Config.StopTimeout != nil {
			s.StopTimeout = time.Duration(*c.Config.StopTimeout) * time.Second
		}
		s.Incarnation = c.Config.Labels[labelLife]
		s.Revision, _ = strconv.ParseUint(c.Config.Labels[labelRevision], 10, 64) // none is 0: older than any store
	}
	if c.HostConfig != nil {
		s.Live = live(c.HostConfig.Resources)
	}
	if c.State == nil {
		return s
	}
	s.Running, s.Paused = c.State.Running, c.State.Paused
	s.StartedAt, s.FinishedAt = parseTime(c.State.StartedAt), parseTime(c.State.FinishedAt)
	s.ExitCode, s.OOMKilled = c.State.ExitCode, c.State.OOMKilled
	return s
}

func live(r container.Resources) runtime.Live {
	l := runtime.Live{Memory: r.Memory, CPU: float64(r.NanoCPUs) / 1e9, Cpuset: r.CpusetCpus}
	if r.Memory > 0 && r.MemorySwap > r.Memory {
		l.Swap = r.MemorySwap - r.Memory
	}
	if r.Memory > 0 && r.MemorySwap < 0 {
		l.Swap = -1
	}
	if r.OomKillDisable != nil {
		l.NoOOMKill = *r.OomKillDisable
	}
	if r.PidsLimit != nil && *r.PidsLimit > 0 {
		l.Pids = *r.PidsLimit
	}
	return l
}

// parseTime parses a time. Docker's year 1 means never, and becomes the zero time.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t
}
