package console

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "berth/api/v1"
	"berth/runtime"
)

// Meter takes stats of a running container, by the engine's id. Its counters
// grow from the start of a run.
type Meter interface {
	Stats(ctx context.Context, containerID string) (runtime.Stats, error)
}

// Audience is who listens.
type Audience interface {
	// Watched says which containers are listened to, and whether all are.
	// Changed is closed when that may be different.
	Watched() (ids []string, all bool, changed <-chan struct{})
	// Stats hands a sample to who listens to a container.
	Stats(id string, s v1.Stats)
}

// Fleet is what runs.
type Fleet interface {
	Running(id string) (containerID string, startedAt time.Time, ok bool)
	RunningIDs() []string
}

// SamplerOptions are options of a Sampler. The zero ones work.
type SamplerOptions struct {
	Disk func(id string) (bytes int64, known bool) // of a container's volume, as last measured
	Log  *slog.Logger
}

const (
	sampleEvery = time.Second
	sampleLimit = 5 * time.Second        // for all containers of a round
	sampleShort = 200 * time.Millisecond // between two readings for one answer
	sampleFresh = 500 * time.Millisecond // a reading so young is an answer
	sampleOld   = 15 * time.Second       // what was used since then is not what is used now
	sampleWide  = 8                      // readings at the same time
)

// Sampler takes the stats of containers: each second of those that are listened
// to, and of one or all when they are asked for. While nobody asks it takes none.
type Sampler struct {
	fleet    Fleet
	meter    Meter
	audience Audience
	disk     func(string) (int64, bool)
	log      *slog.Logger

	mu    sync.Mutex
	last  map[string]reading // by internal_id
	swept time.Time          // when last was searched for old readings
}

// reading is a sample and what is made of it and the one before.
type reading struct {
	containerID string
	startedAt   time.Time
	raw         runtime.Stats
	stats       v1.Stats
	compared    bool // cpu_usage is known
}

// NewSampler makes a sampler; Run lets it work for listeners.
func NewSampler(f Fleet, m Meter, a Audience, o SamplerOptions) *Sampler {
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
		ids, changed := s.wanted()
		var due <-chan time.Time
		if len(ids) > 0 {
			due = tick.C
		}
		select {
		case <-due:
			tick.Reset(sampleEvery)
			s.round(ctx, ids)
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// wanted is which containers are listened to.
func (s *Sampler) wanted() ([]string, <-chan struct{}) {
	ids, all, changed := s.audience.Watched()
	if all {
		// A tick finds what runs by then.
		return []string{""}, changed
	}
	return ids, changed
}

func (s *Sampler) round(ctx context.Context, ids []string) {
	if ids[0] == "" {
		ids = s.fleet.RunningIDs()
	}
	for id, stats := range s.Samples(ctx, ids) {
		s.audience.Stats(id, stats)
	}
}

// Sample returns what a container uses now. Its error is runtime.ErrNotRunning
// or the meter's. It may take a fifth of a second: cpu_usage is a difference.
func (s *Sampler) Sample(ctx context.Context, id string) (v1.Stats, error) {
	if s.first(ctx, id) {
		if err := sleep(ctx, sampleShort); err != nil {
			return v1.Stats{}, err
		}
	}
	return s.answer(ctx, id)
}

// Samples returns what each running container of ids uses, or of all if ids is
// nil. Those that cannot be measured are left out.
func (s *Sampler) Samples(ctx context.Context, ids []string) map[string]v1.Stats {
	if ids == nil {
		ids = s.fleet.RunningIDs()
	}
	ctx, cancel := context.WithTimeout(ctx, sampleLimit)
	defer cancel()
	var begun atomic.Bool
	each(ids, func(id string) {
		if s.first(ctx, id) {
			begun.Store(true)
		}
	})
	if begun.Load() && sleep(ctx, sampleShort) != nil {
		return nil
	}
	var mu sync.Mutex
	all := make(map[string]v1.Stats, len(ids))
	each(ids, func(id string) {
		stats, err := s.answer(ctx, id)
		if err != nil {
			s.log.Debug("stats are not taken", "container", id, "err", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all[id] = stats
	})
	return all
}

// each calls fn for many ids at a time, and waits.
func each(ids []string, fn func(id string)) {
	var group errgroup.Group
	group.SetLimit(sampleWide)
	for _, id := range ids {
		group.Go(func() error {
			fn(id)
			return nil
		})
	}
	_ = group.Wait() // no error is returned
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// first makes a reading of a container that has none to compare with.
func (s *Sampler) first(ctx context.Context, id string) bool {
	containerID, startedAt, ok := s.fleet.Running(id)
	if !ok {
		return false
	}
	if _, ok := s.before(id, containerID, startedAt); ok {
		return false
	}
	_, err := s.measure(ctx, id)
	return err == nil
}

// answer gives a reading that is fresh, or makes one.
func (s *Sampler) answer(ctx context.Context, id string) (v1.Stats, error) {
	containerID, startedAt, ok := s.fleet.Running(id)
	if !ok {
		s.forget(id)
		return v1.Stats{}, runtime.ErrNotRunning
	}
	was, ok := s.before(id, containerID, startedAt)
	if ok && was.compared && time.Since(was.raw.Read) < sampleFresh {
		return was.stats, nil
	}
	return s.measure(ctx, id)
}

// before is the last reading of a run, if it is not too old to compare with.
func (s *Sampler) before(id, containerID string, startedAt time.Time) (reading, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.last[id]
	ok = ok && was.containerID == containerID && was.startedAt.Equal(startedAt) &&
		time.Since(was.raw.Read) < sampleOld
	return was, ok
}

// measure takes one reading and compares it with the one before.
func (s *Sampler) measure(ctx context.Context, id string) (v1.Stats, error) {
	containerID, startedAt, ok := s.fleet.Running(id)
	if !ok {
		return v1.Stats{}, runtime.ErrNotRunning
	}
	raw, err := s.meter.Stats(ctx, containerID)
	if err != nil {
		return v1.Stats{}, err
	}
	was, compare := s.before(id, containerID, startedAt)
	now := reading{containerID: containerID, startedAt: startedAt, raw: raw, stats: plain(raw), compared: compare}
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
	s.sweep()
	return now.stats, nil
}

// sweep forgets readings that are too old to be of use. It searches all of them
// once in sampleOld, not at each reading: a round of n readings costs n.
func (s *Sampler) sweep() {
	if time.Since(s.swept) < sampleOld {
		return
	}
	s.swept = time.Now()
	for id, r := range s.last {
		if time.Since(r.raw.Read) >= sampleOld {
			delete(s.last, id)
		}
	}
}

func (s *Sampler) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, id)
}

func plain(raw runtime.Stats) v1.Stats {
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

// cpuPercent is what was used between two readings, in percent of one core,
// with two decimals.
func cpuPercent(was, is runtime.Stats) float64 {
	took, used := is.Read.Sub(was.Read), is.CPU-was.CPU
	if took <= 0 || used <= 0 {
		return 0
	}
	return float64(int64(used*10000/took)) / 100
}
