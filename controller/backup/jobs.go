package backup

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
)

// Kind is the kind of a job. Jobs of a lower kind come first.
type Kind int

// The kinds of jobs.
const (
	Restoring Kind = iota
	BackingUp
	Removing // of an archive; does not count for the limit of the others
	kinds
)

const (
	maxRemovals = 4      // at once from one target
	maxTurns    = 10_000 // volumes whose last turn is known
)

// place identifies what a job needs to run.
type place struct {
	kind   Kind
	volume string    // empty: none
	target v1.Target // of a removal; empty: of another job
	since  time.Time // of the request
}

// before reports whether p comes before q among those that wait: a volume whose last job
// began earlier comes first, so that many requests for one volume do not delay the others
// by more than a job.
func (j *Jobs) before(p, q place) bool {
	return cmp.Or(cmp.Compare(p.kind, q.kind), cmp.Compare(j.turns[p.volume], j.turns[q.volume]), p.since.Compare(q.since)) < 0
}

// JobState is the state of a job.
type JobState int

// The states of a job.
const (
	NoJob JobState = iota
	JobRuns
	JobEnded
)

// Outcome is the result of a job.
type Outcome struct {
	Err      error
	Snapshot v1.Snapshot // of a backup
	Leftover bool        // a part of the archive of a backup could not be removed after Err
}

// Job is a job as it was observed.
type Job struct {
	State    JobState
	Removes  bool // its kind is Removing
	Progress v1.Progress
	Outcome  Outcome // if it ended
}

// work does a job. It calls report now and then.
type work func(ctx context.Context, report func(bytes, total int64)) Outcome

// Jobs runs the jobs of backups and restores while Run runs. It is safe for concurrent
// use.
type Jobs struct {
	limit func() int // of jobs at once, removals excepted
	log   *slog.Logger

	mu      sync.Mutex
	jobs    map[string]*job  // by id of the backup or restore, until they are forgotten
	waiting map[string]place // ids that wait for a permit
	started []*job           // that Run has to begin
	turn    uint64
	turns   map[string]uint64 // by volume: when its last job began; the oldest are forgotten
	wake    chan struct{}     // signalled when started is not empty
	notify  [kinds]func(id string)
}

type job struct {
	id string
	place
	work      work
	cancel    context.CancelFunc // nil until Run has begun it
	cancelled bool
	ended     bool
	progress  v1.Progress
	outcome   Outcome
}

// NewJobs returns a Jobs that runs up to limit jobs at once.
func NewJobs(limit func() int, log *slog.Logger) *Jobs {
	return &Jobs{limit: limit, log: log, jobs: map[string]*job{}, waiting: map[string]place{}, turns: map[string]uint64{}, wake: make(chan struct{}, 1)}
}

// begin begins a job, or returns false: then the id waits, and Source names it when
// there may be a permit. record stores that the job runs; without it the job does not
// begin.
func (j *Jobs) begin(id string, p place, record func() error, w work) (begun bool, err error) {
	if !j.reserve(id, p, w) {
		return false, nil
	}
	if err := record(); err != nil {
		j.forget(id)
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.started = append(j.started, j.jobs[id])
	signal(j.wake)
	return true, nil
}

func (j *Jobs) reserve(id string, p place, w work) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.jobs[id] != nil {
		return false
	}
	j.waiting[id] = p
	if first := j.first(p.target); first != id {
		return false
	}
	delete(j.waiting, id)
	j.jobs[id] = &job{id: id, place: p, work: w}
	if len(j.turns) >= maxTurns {
		clear(j.turns)
	}
	j.turn++
	j.turns[p.volume] = j.turn
	return true
}

// first returns the waiting id whose job may begin next, or "". The removals of each target
// have their own permits, so that one target that does not answer stops no other's.
func (j *Jobs) first(target v1.Target) (first string) {
	running, busy := 0, map[string]bool{}
	for _, k := range j.jobs {
		if !k.ended && k.target == target {
			running++
		}
		if !k.ended && k.volume != "" {
			busy[k.volume] = true
		}
	}
	limit := maxRemovals
	if target == "" {
		limit = j.limit()
	}
	if running >= limit {
		return ""
	}
	for id, p := range j.waiting {
		if p.target != target || busy[p.volume] {
			continue
		}
		if first == "" || j.before(p, j.waiting[first]) || !j.before(j.waiting[first], p) && id < first {
			first = id
		}
	}
	return first
}

// observe returns the job of an id.
func (j *Jobs) observe(id string) Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.jobs[id]
	switch {
	case k == nil:
		return Job{}
	case !k.ended:
		return Job{State: JobRuns, Removes: k.kind == Removing, Progress: k.progress}
	}
	return Job{State: JobEnded, Removes: k.kind == Removing, Progress: k.progress, Outcome: k.outcome}
}

// stop cancels the job of an id. It still has to end.
func (j *Jobs) stop(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.jobs[id]
	if k == nil || k.ended {
		return
	}
	k.cancelled = true
	if k.cancel != nil {
		k.cancel()
	}
}

// forget drops a job that has ended or did not begin, and the place of an id that
// waits. Source names the next one.
func (j *Jobs) forget(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.jobs, id)
	delete(j.waiting, id)
	j.nameNext()
}

// nameNext names the ids whose jobs may begin next.
func (j *Jobs) nameNext() {
	for _, target := range append(v1.Targets(), "") {
		id := j.first(target)
		if id == "" {
			continue
		}
		if notify := j.notify[j.waiting[id].kind]; notify != nil {
			notify(id)
		}
	}
}

// source returns a source of the ids whose jobs have ended or may begin. It serves the
// jobs of some kinds.
func (j *Jobs) source(of ...Kind) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		j.mu.Lock()
		for _, kind := range of {
			j.notify[kind] = notify
		}
		for id, k := range j.jobs {
			if k.ended {
				notify(id)
			}
		}
		j.nameNext()
		j.mu.Unlock()
		<-ctx.Done()
		return nil
	}
}

// Run runs jobs until ctx ends. Then it cancels them, and waits for them.
func (j *Jobs) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		for _, k := range j.take() {
			running.Go(func() { j.run(ctx, k) })
		}
		select {
		case <-j.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (j *Jobs) take() []*job {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.started
	j.started = nil
	return list
}

// run runs a job. The outcome of one that the end of the daemon interrupted is dropped:
// it begins again at the next start.
func (j *Jobs) run(daemon context.Context, k *job) {
	ctx, cancel := context.WithCancel(daemon)
	defer cancel()
	j.mu.Lock()
	if k.cancel = cancel; k.cancelled {
		cancel()
	}
	j.mu.Unlock()
	var o Outcome
	err := controller.Catch(j.log, "backup job", func() error {
		o = k.work(ctx, func(bytes, total int64) {
			j.mu.Lock()
			defer j.mu.Unlock()
			k.progress = v1.Progress{Bytes: bytes, Total: max(bytes, total)}
		})
		return nil
	}, "job", k.id, "volume", k.volume)
	if err != nil {
		o = Outcome{Err: err, Leftover: k.kind == BackingUp}
	}
	if o.Err != nil && daemon.Err() != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	k.ended, k.outcome = true, o
	if notify := j.notify[k.kind]; notify != nil {
		notify(k.id)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
