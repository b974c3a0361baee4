package stats

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

// Meter reads the stats of a running container, by the engine's id. Its counters start at
// zero with each run.
type Meter interface {
	Stats(ctx context.Context, containerID string) (runtime.Stats, error)
}

// Audience receives samples for its listeners.
type Audience interface {
	// Listened returns the ids of the containers that have listeners, or all if a
	// listener watches every container. changed is closed when that may have changed.
	Listened() (ids []string, all bool, changed <-chan struct{})
	// Stats sends a sample to the listeners of a container.
	Stats(id string, s v1.Stats)
}

// Fleet returns the running containers.
type Fleet interface {
	Running(id string) (containerID string, startedAt time.Time, ok bool)
	RunningIDs() []string
}

// Options configures a Sampler. The zero value is valid.
type Options struct {
	Disk func(id string) (bytes int64, known bool) // the last measured size of a container's volume
	Log  *slog.Logger
}

const (
	period       = time.Second
	roundTimeout = 5 * time.Second        // for all containers of a round
	minInterval  = 200 * time.Millisecond // between two readings: a sample that is younger is returned again
	maxAge       = 15 * time.Second       // maximum age of a reading to compare with
	maxParallel  = 8                      // concurrent readings
)

// Sampler reads the stats of containers: once a second of those with listeners, and of
// one or all on request. Without listeners and requests it reads none.
type Sampler struct {
	fleet    Fleet
	meter    Meter
	audience Audience
	disk     func(string) (int64, bool)
	log      *slog.Logger

	mu   sync.Mutex
	last map[string]reading // by internal_id; none is older than maxAge after a request
}

// reading is one reading of the meter with the sample computed from it and the reading
// before.
type reading struct {
	containerID string
	startedAt   time.Time
	raw         runtime.Stats
	stats       v1.Stats
	compared    bool // cpu_usage is known
}

// NewSampler returns a sampler. Listeners receive samples while Run runs.
func NewSampler(f Fleet, m Meter, a Audience, o Options) *Sampler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Disk == nil {
		o.Disk = func(string) (int64, bool) { return 0, false }
	}
	return &Sampler{fleet: f, meter: m, audience: a, disk: o.Disk, log: o.Log, last: map[string]reading{}}
}

// Run samples for listeners until ctx ends.
func (s *Sampler) Run(ctx context.Context) error {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		ids, all, changed := s.audience.Listened()
		var due <-chan time.Time
		if all || len(ids) > 0 {
			due = tick.C
		}
		if all {
			ids = nil
		}
		select {
		case <-due:
			tick.Reset(period)
			for id, stats := range s.Samples(ctx, ids) {
				s.audience.Stats(id, stats)
			}
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Sample returns the current stats of a container. It returns runtime.ErrNotRunning or
// the error of the meter. The first sample takes minInterval longer, because
// cpu_usage is a difference of two readings.
func (s *Sampler) Sample(ctx context.Context, id string) (v1.Stats, error) {
	defer s.sweep()
	if !controller.Sleep(ctx, s.readFirst(ctx, id)) {
		return v1.Stats{}, ctx.Err()
	}
	return s.current(ctx, id)
}

// Samples returns the stats of the running containers among ids, or of all if ids is nil.
// It omits containers that cannot be measured.
func (s *Sampler) Samples(ctx context.Context, ids []string) map[string]v1.Stats {
	if ids == nil {
		ids = s.fleet.RunningIDs()
	}
	defer s.sweep()
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	var mu sync.Mutex
	var longest time.Duration
	each(s.log, ids, func(id string) {
		wait := s.readFirst(ctx, id)
		mu.Lock()
		defer mu.Unlock()
		longest = max(longest, wait)
	})
	if !controller.Sleep(ctx, longest) {
		return nil
	}
	all := make(map[string]v1.Stats, len(ids))
	each(s.log, ids, func(id string) {
		stats, err := s.current(ctx, id)
		if err != nil {
			s.log.Debug("could not read the stats of a container", "container", id, "err", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all[id] = stats
	})
	return all
}

// each calls fn for all ids, maxParallel at a time, and waits for them. A panic ends the call for its id.
func each(log *slog.Logger, ids []string, fn func(id string)) {
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for _, id := range ids {
		group.Go(func() error {
			return controller.Catch(log, "measurement", func() error { fn(id); return nil }, "container", id)
		})
	}
	_ = group.Wait() // panics are logged
}

// readFirst takes a first reading of a container that has none to compare with. It
// returns how long the caller waits before the second one: minInterval, or the rest of
// it if another request has just taken the first one.
func (s *Sampler) readFirst(ctx context.Context, id string) time.Duration {
	containerID, startedAt, ok := s.fleet.Running(id)
	if !ok {
		return 0
	}
	was, ok := s.previous(id, containerID, startedAt)
	switch {
	case ok && was.compared:
		return 0
	case ok:
		return min(minInterval-time.Since(was.raw.Read), minInterval)
	}
	if _, err := s.measure(ctx, id); err != nil {
		return 0
	}
	return minInterval
}

// current returns the last sample of a container if it is fresh, or takes a new one.
func (s *Sampler) current(ctx context.Context, id string) (v1.Stats, error) {
	containerID, startedAt, ok := s.fleet.Running(id)
	if !ok {
		return v1.Stats{}, runtime.ErrNotRunning
	}
	was, ok := s.previous(id, containerID, startedAt)
	if ok && was.compared && time.Since(was.raw.Read) < minInterval {
		return was.stats, nil
	}
	return s.measure(ctx, id)
}

// previous returns the last reading of a run, unless it is too old to compare with.
func (s *Sampler) previous(id, containerID string, startedAt time.Time) (reading, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.last[id]
	ok = ok && was.containerID == containerID && was.startedAt.Equal(startedAt) &&
		time.Since(was.raw.Read) < maxAge
	return was, ok
}

// measure takes one reading and compares it with the previous one. If another request
// has taken one meanwhile, that one counts: a difference over a few microseconds says
// nothing about the CPU usage.
func (s *Sampler) measure(ctx context.Context, id string) (v1.Stats, error) {
	containerID, startedAt, ok := s.fleet.Running(id)
	if !ok {
		return v1.Stats{}, runtime.ErrNotRunning
	}
	raw, err := s.meter.Stats(ctx, containerID)
	if err != nil {
		return v1.Stats{}, err
	}
	was, compare := s.previous(id, containerID, startedAt)
	if took := raw.Read.Sub(was.raw.Read); compare && took >= 0 && took < minInterval {
		return was.stats, nil
	}
	now := reading{containerID: containerID, startedAt: startedAt, raw: raw, stats: statsOf(raw), compared: compare}
	now.stats.Uptime = int64(max(raw.Read.Sub(startedAt), 0) / time.Second)
	if compare {
		now.stats.CPUUsage = cpuPercent(was.raw, raw)
	}
	if size, known := s.disk(id); known {
		now.stats.DiskUsage = &size
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[id] = now
	return now.stats, nil
}

// sweep removes readings that are too old to compare with.
func (s *Sampler) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.last, func(_ string, r reading) bool { return time.Since(r.raw.Read) >= maxAge })
}

// statsOf returns the fields that one reading determines.
func statsOf(raw runtime.Stats) v1.Stats {
	return v1.Stats{
		MemoryUsage: raw.Memory,
		MemoryLimit: raw.MemoryLimit,
		NetworkRx:   raw.NetworkRx,
		NetworkTx:   raw.NetworkTx,
		BlockRead:   raw.BlockRead,
		BlockWrite:  raw.BlockWrite,
		Pids:        raw.Pids,
	}
}

// cpuPercent returns the CPU usage between two readings in percent of one core, with two
// decimals.
func cpuPercent(before, after runtime.Stats) float64 {
	took, used := after.Read.Sub(before.Read), after.CPU-before.CPU
	if took <= 0 || used <= 0 {
		return 0
	}
	return float64(int64(used*10000/took)) / 100
}
