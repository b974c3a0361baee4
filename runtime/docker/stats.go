package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"berth/runtime"
)

// Stats returns the current resource usage of a container. Counters start at 0
// with each run; callers compute rates. A call takes up to a second, and the
// engine answers one call after another, so callers try package cgroup first.
func (e *Engine) Stats(ctx context.Context, containerID string) (runtime.Stats, error) {
	c, err := e.core.inspectOwned(ctx, containerID)
	if err != nil {
		return runtime.Stats{}, err
	}
	if !c.State.Running {
		return runtime.Stats{}, fmt.Errorf("stats of container %s: %w", containerID, runtime.ErrNotRunning)
	}
	var answer container.StatsResponse
	err = e.core.calls.do(ctx, opStats, "container "+containerID, func(ctx context.Context) error {
		reader, err := e.core.conn.client().ContainerStatsOneShot(ctx, containerID)
		if err != nil {
			return err
		}
		defer reader.Body.Close()
		return json.NewDecoder(reader.Body).Decode(&answer)
	})
	if err != nil {
		return runtime.Stats{}, err
	}
	// For a container that does not run, the engine sends a sample of the year 1.
	if answer.Read.Year() <= 1 {
		return runtime.Stats{}, fmt.Errorf("stats of container %s: %w", containerID, runtime.ErrNotRunning)
	}
	s := stats(answer)
	s.Read = time.Now() // the engine's has no monotonic part: ages would be wrong after the clock was set
	return s, nil
}

func stats(a container.StatsResponse) runtime.Stats {
	s := runtime.Stats{
		CPU:         time.Duration(a.CPUStats.CPUUsage.TotalUsage),
		Memory:      memory(a.MemoryStats),
		MemoryLimit: int64(a.MemoryStats.Limit),
		Pids:        int64(a.PidsStats.Current),
	}
	for _, n := range a.Networks {
		s.NetworkRx += int64(n.RxBytes)
		s.NetworkTx += int64(n.TxBytes)
	}
	for _, b := range a.BlkioStats.IoServiceBytesRecursive {
		switch strings.ToLower(b.Op) {
		case "read":
			s.BlockRead += int64(b.Value)
		case "write":
			s.BlockWrite += int64(b.Value)
		}
	}
	return s
}

// memory returns the figure of docker stats: usage without the inactive page
// cache. The first key is that of cgroup v1, the second that of v2.
func memory(m container.MemoryStats) int64 {
	cache, first := m.Stats["total_inactive_file"]
	if !first {
		cache = m.Stats["inactive_file"]
	}
	if cache < m.Usage {
		return int64(m.Usage - cache)
	}
	return int64(m.Usage)
}
