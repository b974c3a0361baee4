package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"berth/runtime"
)

// Stats returns the current resource usage of a container. Counters start at 0
// with each run; callers compute rates. A call takes up to a second, and the
// engine answers one call after another, so callers try package cgroup first.
func (e *Engine) Stats(ctx context.Context, containerID string) (runtime.Stats, error) {
	c, err := e.inspectOwned(ctx, containerID)
	if err != nil {
		return runtime.Stats{}, err
	}
	if !c.State.Running {
		return runtime.Stats{}, fmt.Errorf("stats of container %s: %w", containerID, runtime.ErrNotRunning)
	}
	var answer container.StatsResponse
	err = e.calls.do(ctx, opStats, "container "+containerID, func(ctx context.Context) error {
		reader, err := e.conn.client().ContainerStatsOneShot(ctx, containerID)
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

// Writable returns the places where the container n writes outside its mounts:
// its layer, the volumes that its image declares, and the files that the engine
// mounts at /etc/hosts, /etc/hostname and /etc/resolv.conf. If the layer is no
// directory of this host (a remote engine, the containerd image store), the
// engine walks it and returns its Size, which does not count empty files.
// With an error the result has a ContainerID only if the engine answers other requests.
func (e *Engine) Writable(ctx context.Context, n runtime.Name) (runtime.Writable, error) {
	c, err := e.find(ctx, n)
	if err != nil {
		return runtime.Writable{}, err
	}
	w := runtime.Writable{Name: n, ContainerID: c.ID}
	for _, path := range []string{c.HostsPath, c.HostnamePath, c.ResolvConfPath} {
		if path != "" {
			w.Files = append(w.Files, path)
		}
	}
	for _, m := range c.Mounts {
		if m.Type == mount.TypeVolume && m.Source != "" {
			w.Dirs = append(w.Dirs, m.Source)
		}
	}
	if upper := c.GraphDriver.Data["UpperDir"]; upper != "" {
		if _, err := os.Stat(upper); err == nil {
			w.Dirs, w.Local = append(w.Dirs, upper), c.State != nil && c.State.Running // before, the engine has not named all files
			return w, nil
		}
	}
	w.Size, err = e.size(ctx, n, w.ContainerID)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // the layer takes long, or the engine answers nobody
		if _, dead := e.find(context.WithoutCancel(ctx), n); dead != nil {
			return runtime.Writable{}, errors.Join(err, dead)
		}
	}
	return w, err
}

// size asks the engine for the size of a container's layer, in bytes.
func (e *Engine) size(ctx context.Context, n runtime.Name, id string) (int64, error) {
	var c container.InspectResponse
	err := e.calls.do(ctx, opSize, n.String(), func(ctx context.Context) (err error) {
		c, _, err = e.conn.client().ContainerInspectWithRaw(ctx, id, true)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case c.ContainerJSONBase == nil || c.SizeRw == nil:
		return 0, fmt.Errorf("size of %s: %w: its answer has no size", n, runtime.ErrUnavailable)
	}
	return *c.SizeRw, nil
}
