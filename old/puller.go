package container

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"berth/controller"
	"berth/runtime"
)

// The limits of a Puller.
const (
	maxQueuedPulls = 1024
	minPullDelay   = 2 * time.Second // after a failure; doubles with each more
	maxPullDelay   = 5 * time.Minute
	pullFoldTime   = 10 * time.Minute // in which equal failures of a pull are one line of the log
)

// Pull is the state of the pull of an image.
type Pull struct {
	Done     bool
	Err      error     // result of a pull that is done
	RetryAt  time.Time // a failed pull is not retried before
	Progress runtime.Progress
}

// permanent reports whether the pull failed for good: the registry refused it.
func (p Pull) permanent() bool {
	return errors.Is(p.Err, runtime.ErrImageNotFound) || errors.Is(p.Err, runtime.ErrDenied) || errors.Is(p.Err, runtime.ErrInvalid)
}

// Puller pulls images in workers of its own, so that no reconcile waits for a
// registry. An image that many containers request is pulled once.
type Puller struct {
	engine  ImagePuller
	workers int
	log     *slog.Logger
	queue   chan pullKey

	mu     sync.Mutex
	jobs   map[pullKey]*pullJob
	notify func(id string)
}

// ImagePuller pulls an image. It returns nil when the image is on the host,
// runtime.ErrImageNotFound, runtime.ErrDenied or runtime.ErrInvalid if a retry is
// useless, and any other error if it is not.
type ImagePuller interface {
	Pull(ctx context.Context, ref string, a runtime.Auth, progress func(runtime.Progress)) error
}

type pullKey struct {
	ref  string
	auth runtime.Auth
}

type pullJob struct {
	state    Pull
	started  bool            // a worker pulls the image
	failures int             // in a row
	waiting  map[string]bool // ids that requested the image: true until they received the result
	logged   loggedFailure
}

// loggedFailure is the failure of a pull that was logged last, and has not ended.
type loggedFailure struct {
	text   string // empty: none
	at     time.Time
	folded int // equal ones since then, which were not logged
}

// log reports whether the result of a pull is logged, and how many failures before it
// were not. A success is logged after a failure.
func (l *loggedFailure) log(err error) (now bool, folded int) {
	switch {
	case err == nil:
		now = l.text != ""
		*l = loggedFailure{}
		return now, 0
	case l.text == err.Error() && time.Since(l.at) < pullFoldTime:
		l.folded++
		return false, 0
	}
	folded = l.folded
	*l = loggedFailure{text: err.Error(), at: time.Now()}
	return true, folded
}

// NewPuller returns a Puller that pulls as many images at once as it has workers,
// while Run runs.
func NewPuller(engine ImagePuller, workers int, log *slog.Logger) *Puller {
	return &Puller{engine: engine, workers: max(1, workers), log: log, queue: make(chan pullKey, maxQueuedPulls),
		jobs: map[pullKey]*pullJob{}, notify: func(string) {}}
}

// Request returns the state of the pull of an image that container id needs, and
// queues the pull if there is none. A permanent failure is returned once to each id
// that waited for it; a later request begins another pull. Any other failure is
// returned until its RetryAt.
func (p *Puller) Request(id, ref string, auth runtime.Auth) Pull {
	return p.find(id, pullKey{ref, auth}, func(job *pullJob) bool {
		switch {
		case !job.state.Done:
			job.waiting[id] = true
			return true
		case job.state.Err != nil && !job.state.permanent():
			return time.Now().Before(job.state.RetryAt)
		}
		return job.notify(id)
	})
}

// Refresh is Request for an image that may be on the host already: it returns only the
// result of a pull that began after the first call for it, and returns it once.
func (p *Puller) Refresh(id, ref string, auth runtime.Auth) Pull {
	return p.find(id, pullKey{ref, auth}, func(job *pullJob) bool {
		if !job.state.Done {
			if _, asked := job.waiting[id]; !asked {
				job.waiting[id] = !job.started
			}
			return true
		}
		if !job.waiting[id] {
			return false
		}
		job.waiting[id] = false
		return true
	})
}

// find returns the state of the pull with this key. If there is none, or answers reports
// that its state is no answer for container id, it begins another one.
func (p *Puller) find(id string, key pullKey, answers func(*pullJob) bool) Pull {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeWaiter(id, key)
	job := p.jobs[key]
	switch {
	case job == nil:
		return p.begin(id, key, &pullJob{})
	case answers(job):
		return job.state
	}
	return p.begin(id, key, job)
}

// notify reports whether Request returns the result of the pull to id: once, and a
// failure also until its RetryAt, so that repeated requests cause no pulls.
func (j *pullJob) notify(id string) bool {
	waits, asked := j.waiting[id]
	if asked {
		j.waiting[id] = false
	}
	return waits || asked && time.Now().Before(j.state.RetryAt)
}

// idle reports whether every id has received the result.
func (j *pullJob) idle() bool {
	for _, waits := range j.waiting {
		if waits {
			return false
		}
	}
	return j.state.Done && time.Now().After(j.state.RetryAt)
}

// begin queues a pull that follows another one of the same image.
func (p *Puller) begin(id string, key pullKey, last *pullJob) Pull {
	select {
	case p.queue <- key:
		p.jobs[key] = &pullJob{failures: last.failures, logged: last.logged, waiting: map[string]bool{id: true}}
	default: // the queue is full: the next reconcile requests it again
	}
	return Pull{}
}

// removeWaiter removes id from all pulls except one, and drops the idle ones.
func (p *Puller) removeWaiter(id string, except pullKey) {
	for key, job := range p.jobs {
		if key == except {
			continue
		}
		delete(job.waiting, id)
		if job.idle() {
			delete(p.jobs, key)
		}
	}
}

// Forget removes container id from all pulls: it is gone, or its installation
// failed. It receives the result of no pull that it requested before.
func (p *Puller) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeWaiter(id, pullKey{})
}

// Source is a controller.Source of the containers whose pull is done.
func (p *Puller) Source(ctx context.Context, notify func(id string)) error {
	p.mu.Lock()
	p.notify = notify
	p.mu.Unlock()
	<-ctx.Done()
	return nil
}

// Run pulls images until ctx ends.
func (p *Puller) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range p.workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case key := <-p.queue:
					p.fetch(ctx, key)
				}
			}
		})
	}
	wg.Wait()
}

func (p *Puller) fetch(ctx context.Context, key pullKey) {
	p.mu.Lock()
	p.jobs[key].started = true
	level := slog.LevelInfo
	if p.jobs[key].logged.text != "" {
		level = slog.LevelDebug // it is tried again
	}
	p.mu.Unlock()
	p.log.Log(ctx, level, "pulling image", "image", key.ref)
	err := controller.Catch(p.log, "pull of an image", func() error {
		return p.engine.Pull(ctx, key.ref, key.auth, func(now runtime.Progress) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.jobs[key].state.Progress = now
		})
	}, "image", key.ref)
	p.logResult(key, err)
	ids, notify := p.finish(key, err)
	for _, id := range ids {
		notify(id)
	}
}

// logResult logs the result of a pull. Failures that repeat are counted.
func (p *Puller) logResult(key pullKey, err error) {
	p.mu.Lock()
	now, folded := p.jobs[key].logged.log(err)
	p.mu.Unlock()
	args := []any{"image", key.ref}
	if folded > 0 {
		args = append(args, "repeated", folded)
	}
	switch {
	case err == nil && now:
		p.log.Info("pulled an image after failures", args...)
	case now:
		p.log.Warn("pulling an image failed", append(args, "err", err)...)
	case err != nil:
		p.log.Debug("pulling an image failed again", append(args, "err", err)...)
	}
}

func (p *Puller) finish(key pullKey, err error) (ids []string, notify func(id string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	job := p.jobs[key]
	job.end(err)
	for id := range job.waiting {
		ids = append(ids, id)
	}
	return ids, p.notify
}

// NotKept turns a pull that succeeded into a failure: the engine does not find the
// image. The pull is retried at RetryAt.
func (p *Puller) NotKept(ref string, auth runtime.Auth) Pull {
	p.mu.Lock()
	defer p.mu.Unlock()
	job := p.jobs[pullKey{ref, auth}]
	if job == nil {
		return Pull{}
	}
	if job.state.Done && job.state.Err == nil {
		job.end(errNotKept)
	}
	return job.state
}

// end sets the result of the pull, and the time of the retry if it failed.
func (j *pullJob) end(err error) {
	j.state.Done, j.state.Err = true, err
	if err != nil {
		j.state.RetryAt = time.Now().Add(controller.Doubled(minPullDelay, maxPullDelay, j.failures))
		j.failures++
	}
}
