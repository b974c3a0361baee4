package jobs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"berth/controller"
)

const (
	// AskAgain is the time after which a request that waits calls Start again.
	AskAgain = 3 * time.Second
	// maxLent is how many jobs may have lent their permits at once.
	maxLent = 64
	// queuedFor is how long a request that does not ask again stays in the queue: its object
	// is gone, or has to wait for something else. It must not stop those behind it.
	queuedFor = 10 * time.Second
)

// Options limit the jobs that run at once.
type Options struct {
	Name   string     // of a job, in the log
	Limit  func() int // of jobs at once
	PerKey int        // of jobs of one key at once; 0 means 1
	Log    *slog.Logger
}

// Request asks for a job.
type Request[T any] struct {
	ID     string // of the job: it runs once at a time
	Key    string // whom it is for: keys take turns, and each has Options.PerKey jobs at once
	Urgent bool   // it comes before the others, see next

	// Record, if not nil, is called when the job has its permit. Without it the job does
	// not begin: what runs has to be recorded first.
	Record func() error
	// Work does the job until it has ended or ctx ends. It calls report with what Get
	// returns as Value: its progress, or its result.
	Work func(ctx context.Context, report func(T)) error
}

// State is the state of a job.
type State int

// The states of a job. One that was never started, that waits or that is forgotten is None.
const (
	None State = iota
	Running
	Ended
)

// Job is a job as it was observed.
type Job[T any] struct {
	State State
	Value T     // reported last
	Err   error // if it has ended; a panic is an error
}

// Jobs runs jobs while Run runs. It is safe for concurrent use.
type Jobs[T any] struct {
	options Options
	running sync.WaitGroup

	mu      sync.Mutex
	daemon  context.Context    // of Run, with which its jobs end; nil: it does not run
	jobs    map[string]*job[T] // by id, until they are forgotten
	lent    int                // permits of jobs that wait for something, see Lend
	back    []chan struct{}    // of jobs that want their permit back; closed when they have it
	waiting []queued           // in the order in which their jobs begin; each is of a stored object, which bounds them
	served  map[string]bool    // keys whose urgent job began since another one did
	sources map[*func(id string)]bool
}

type job[T any] struct {
	Job[T]
	key    string
	cancel context.CancelFunc
}

// queued is a request that waits for a permit.
type queued struct {
	id, key string
	urgent  bool
	asked   time.Time // last
}

// New returns Jobs that report values of type T.
func New[T any](o Options) *Jobs[T] {
	o.PerKey = max(1, o.PerKey)
	return &Jobs[T]{options: o, jobs: map[string]*job[T]{}, served: map[string]bool{}, sources: map[*func(string)]bool{}}
}

// Run lets jobs begin until ctx ends. Then it cancels those that run, and waits for them.
func (j *Jobs[T]) Run(ctx context.Context) error {
	j.mu.Lock()
	j.daemon = ctx
	j.mu.Unlock()
	j.wake()
	<-ctx.Done()
	j.mu.Lock()
	j.daemon = nil
	j.mu.Unlock()
	j.running.Wait()
	return nil
}

// Start begins a job, and returns false if it has to wait for a permit: call it again
// after AskAgain, or when Source names the id. It also returns false if a job of this id
// runs, or was not forgotten.
func (j *Jobs[T]) Start(r Request[T]) (started bool, err error) {
	daemon, ctx, own := j.reserve(r)
	if own == nil {
		return false, nil
	}
	defer j.wake()
	defer func() {
		if !started { // also after a panic of Record
			own.cancel()
			j.mu.Lock()
			delete(j.jobs, r.ID)
			j.mu.Unlock()
			j.running.Done()
		}
	}()
	if r.Record != nil {
		if err := r.Record(); err != nil {
			return false, err
		}
	}
	go j.run(daemon, ctx, r, own)
	return true, nil
}

// reserve gives a request its permit, or queues it and returns nil.
func (j *Jobs[T]) reserve(r Request[T]) (daemon, ctx context.Context, own *job[T]) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.jobs[r.ID] != nil {
		return nil, nil, nil
	}
	p := queued{r.ID, r.Key, r.Urgent, time.Now()}
	if i := slices.IndexFunc(j.waiting, func(p queued) bool { return p.id == r.ID }); i >= 0 {
		j.waiting[i] = p
	} else {
		j.waiting = append(j.waiting, p)
	}
	if j.next() != r.ID {
		return nil, nil, nil
	}
	j.endTurn(r)
	own = &job[T]{Job: Job[T]{State: Running}, key: r.Key}
	ctx, own.cancel = context.WithCancel(j.daemon)
	j.running.Add(1)
	j.jobs[r.ID] = own
	return j.daemon, ctx, own
}

// endTurn removes a request whose job begins from the queue. The others of its key wait behind those of
// all other keys, for the next turn of the key. j.mu is held.
func (j *Jobs[T]) endTurn(r Request[T]) {
	var waiting, same []queued
	others := false
	for _, p := range j.waiting {
		switch {
		case p.id == r.ID:
			continue
		case p.key == r.Key:
			same = append(same, p)
		default:
			waiting = append(waiting, p)
		}
		others = others || !p.urgent
	}
	j.waiting = append(waiting, same...)
	if r.Urgent && others {
		j.served[r.Key] = true
	} else {
		clear(j.served)
	}
}

// next returns the id whose job may begin next, or "". Urgent requests come before the others, but
// each key has one urgent turn between two others: so some volumes that are restored by turns
// cannot keep the backups of all others from beginning. j.mu is held.
func (j *Jobs[T]) next() (id string) {
	running, of := j.count()
	running -= j.lent
	for len(j.back) > 0 && running < j.options.Limit() { // they have begun already
		close(j.back[0])
		j.back = j.back[1:]
		j.lent--
		running++
	}
	if j.daemon == nil || running >= j.options.Limit() {
		return ""
	}
	j.waiting = slices.DeleteFunc(j.waiting, func(p queued) bool { return time.Since(p.asked) > queuedFor })
	for _, p := range j.waiting {
		switch {
		case of[p.key] >= j.options.PerKey:
		case p.urgent && !j.served[p.key]:
			return p.id
		case id == "":
			id = p.id
		}
	}
	return id
}

// run does a job. One that the end of the daemon interrupts stays Running, so that nobody
// records an end: it begins again at the next start.
func (j *Jobs[T]) run(daemon, ctx context.Context, r Request[T], own *job[T]) {
	defer j.running.Done()
	defer own.cancel()
	err := controller.Catch(j.options.Log, j.options.Name, func() error {
		return r.Work(ctx, func(value T) {
			j.mu.Lock()
			defer j.mu.Unlock()
			own.Value = value
		})
	}, "job", r.ID, "key", r.Key)
	if err != nil && daemon.Err() != nil {
		return
	}
	j.mu.Lock()
	own.State, own.Err = Ended, err
	j.mu.Unlock()
	j.wake(r.ID)
}

// Lend calls wait, in which a job waits for something else than its permit. After keep, others may have the
// permit: then Lend returns when the job has one again, which it gets before all that have not
// begun. It returns the error of wait, for which a panic is one, and that of ctx.
func (j *Jobs[T]) Lend(ctx context.Context, keep time.Duration, wait func() error) error {
	var lent, ended bool
	timer := time.AfterFunc(keep, func() {
		j.mu.Lock()
		if lent = !ended && j.lent < maxLent; lent {
			j.lent++
		}
		j.mu.Unlock()
		j.wake()
	})
	defer timer.Stop()
	err := controller.Catch(j.options.Log, j.options.Name, wait)
	back := make(chan struct{})
	j.mu.Lock()
	ended = true
	if lent {
		j.back = append(j.back, back)
	} else {
		close(back)
	}
	j.mu.Unlock()
	j.wake()
	select {
	case <-back:
		return err
	case <-ctx.Done():
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.Index(j.back, back); i >= 0 { // it ends without the permit
		j.back = slices.Delete(j.back, i, i+1)
		j.lent--
	}
	return errors.Join(err, ctx.Err())
}

// Get returns the job of an id.
func (j *Jobs[T]) Get(id string) Job[T] {
	j.mu.Lock()
	defer j.mu.Unlock()
	if own := j.jobs[id]; own != nil {
		return own.Job
	}
	return Job[T]{}
}

// Running returns the number of jobs that run.
func (j *Jobs[T]) Running() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	running, _ := j.count()
	return running
}

// count returns the number of jobs that run, and of each key. j.mu is held.
func (j *Jobs[T]) count() (running int, of map[string]int) {
	of = map[string]int{}
	for _, own := range j.jobs {
		if own.State == Running {
			running++
			of[own.key]++
		}
	}
	return running, of
}

// Cancel ends the context of a job that runs. Source names it when it has ended.
func (j *Jobs[T]) Cancel(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if own := j.jobs[id]; own != nil {
		own.cancel()
	}
}

// Forget drops the result of a job that has ended, or a request that waits.
func (j *Jobs[T]) Forget(id string) {
	j.mu.Lock()
	if own := j.jobs[id]; own != nil && own.State == Ended {
		delete(j.jobs, id)
	}
	j.waiting = slices.DeleteFunc(j.waiting, func(p queued) bool { return p.id == id })
	j.mu.Unlock()
	j.wake()
}

// Source is a controller.Source of the ids whose job has ended or may begin.
func (j *Jobs[T]) Source(ctx context.Context, notify func(id string)) error {
	var ended []string
	j.mu.Lock()
	j.sources[&notify] = true
	for id, own := range j.jobs {
		if own.State == Ended {
			ended = append(ended, id)
		}
	}
	j.mu.Unlock()
	j.wake(ended...)
	<-ctx.Done()
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.sources, &notify)
	return nil
}

// wake names ids whose job has ended, and the one whose job may begin next. j.mu is not
// held: those who are named may call Jobs.
func (j *Jobs[T]) wake(ended ...string) {
	j.mu.Lock()
	if next := j.next(); next != "" {
		ended = append(ended, next)
	}
	sources := slices.Collect(maps.Keys(j.sources))
	j.mu.Unlock()
	for _, id := range ended {
		for _, notify := range sources {
			(*notify)(id)
		}
	}
}
