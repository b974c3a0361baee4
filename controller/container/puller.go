package container

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"berth/runtime"
)

// How many images may wait to be fetched, and how failed pulls are spaced.
const (
	pullQueue = 1024
	pullFirst = 2 * time.Second // doubles with each failure
	pullMost  = 5 * time.Minute
)

// Pull is how far an image is.
type Pull struct {
	Done     bool
	Err      error     // of a pull that is done
	RetryAt  time.Time // of one that failed: it is not begun again before
	Progress runtime.Progress
}

// definite says whether the registry has answered no.
func (p Pull) definite() bool {
	return errors.Is(p.Err, runtime.ErrImageNotFound) || errors.Is(p.Err, runtime.ErrDenied) || errors.Is(p.Err, runtime.ErrInvalid)
}

// Puller fetches images in workers of its own, so that no reconcile waits for a
// registry. An image that many containers want is fetched once.
type Puller struct {
	engine  ImagePuller
	workers int
	log     *slog.Logger
	queue   chan pullKey

	mu     sync.Mutex
	jobs   map[pullKey]*pullJob
	notify func(id string)
}

// ImagePuller fetches an image; it returns when the image is there, or with
// runtime.ErrImageNotFound, runtime.ErrDenied or an error that says nothing.
type ImagePuller interface {
	Pull(ctx context.Context, ref string, a runtime.Auth, progress func(runtime.Progress)) error
}

type pullKey struct {
	ref  string
	auth runtime.Auth
}

type pullJob struct {
	state    Pull
	failures int             // in a row
	waiting  map[string]bool // who asked: true until told the end
}

// NewPuller makes a Puller that fetches so many images at once, while Run runs.
func NewPuller(engine ImagePuller, workers int, log *slog.Logger) *Puller {
	return &Puller{engine: engine, workers: max(1, workers), log: log, queue: make(chan pullKey, pullQueue),
		jobs: map[pullKey]*pullJob{}, notify: func(string) {}}
}

// Request says how far the image is that container id needs, and begins to fetch
// it. A registry's no is told each id that waited for it once; who asks anew
// lets it be asked anew. Any other failure stands until its RetryAt.
func (p *Puller) Request(id, ref string, auth runtime.Auth) Pull {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := pullKey{ref, auth}
	p.leave(id, key)
	job := p.jobs[key]
	switch {
	case job == nil:
		return p.begin(id, key, 0)
	case !job.state.Done:
		job.waiting[id] = true
		return job.state
	case job.state.Err != nil && !job.state.definite():
		if time.Now().Before(job.state.RetryAt) {
			return job.state
		}
	case job.notify(id):
		return job.state
	}
	return p.begin(id, key, job.failures)
}

// notify says whether id is to be told the end of the pull: once, and of a no also
// until its RetryAt, so that who asks again and again lets nothing be fetched.
func (j *pullJob) notify(id string) bool {
	waits, asked := j.waiting[id]
	if asked {
		j.waiting[id] = false
	}
	return waits || asked && time.Now().Before(j.state.RetryAt)
}

// idle says whether nobody is to be told any more.
func (j *pullJob) idle() bool {
	for _, waits := range j.waiting {
		if waits {
			return false
		}
	}
	return j.state.Done && time.Now().After(j.state.RetryAt)
}

func (p *Puller) begin(id string, key pullKey, failures int) Pull {
	select {
	case p.queue <- key:
		p.jobs[key] = &pullJob{failures: failures, waiting: map[string]bool{id: true}}
	default: // too many wait: asked again at the next look
	}
	return Pull{}
}

// leave takes id from all pulls but one, and drops those that are of no more use.
func (p *Puller) leave(id string, but pullKey) {
	for key, job := range p.jobs {
		if key == but {
			continue
		}
		delete(job.waiting, id)
		if job.idle() {
			delete(p.jobs, key)
		}
	}
}

// Forget is for a container that is gone, or has taken a no for an answer: it
// is told no earlier end of a pull.
func (p *Puller) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(id, pullKey{})
}

// Source names the containers whose pull has ended.
func (p *Puller) Source(ctx context.Context, notify func(id string)) error {
	p.mu.Lock()
	p.notify = notify
	p.mu.Unlock()
	<-ctx.Done()
	return nil
}

// Run fetches images until ctx ends.
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
	p.log.Info("pulling image", "image", key.ref)
	err := p.engine.Pull(ctx, key.ref, key.auth, func(now runtime.Progress) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.jobs[key].state.Progress = now
	})
	if err != nil {
		p.log.Warn("pulling an image failed", "image", key.ref, "err", err)
	}
	ids, notify := p.finish(key, err)
	for _, id := range ids {
		notify(id)
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

// errNotKept reports that the engine has pulled an image and does not have it.
var errNotKept = errors.New("the image was pulled and is not on the host")

// NotKept makes a failure of a pull that succeeded: the engine does not find the
// image. It is pulled again at RetryAt.
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

// recordExit records how a pull ended, and when one that failed may begin again.
func (j *pullJob) end(err error) {
	j.state.Done, j.state.Err = true, err
	if err != nil {
		j.failures++
		j.state.RetryAt = time.Now().Add(min(pullFirst<<min(j.failures-1, 20), pullMost))
	}
}
