package container

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"berth/controller"
	"berth/controller/jobs"
	"berth/runtime"
)

// pullBackOff is the delay after a pull that failed.
func pullBackOff() controller.BackOff {
	return controller.BackOff{Initial: 2 * time.Second, Max: 5 * time.Minute}
}

// errNotKept reports that the engine has pulled an image and does not have it.
var errNotKept = errors.New("the image was pulled and is not on the host")

// Pull is the state of the pull of an image.
type Pull struct {
	Done     bool
	Err      error     // result of a pull that is done
	RetryAt  time.Time // a failed pull is not retried before
	Progress runtime.Progress
}

// Permanent reports whether the pull failed for good: the registry refused it.
func (p Pull) Permanent() bool {
	return errors.Is(p.Err, runtime.ErrImageNotFound) || errors.Is(p.Err, runtime.ErrOtherMachine) ||
		errors.Is(p.Err, runtime.ErrDenied) || errors.Is(p.Err, runtime.ErrInvalid)
}

// ImagePuller pulls an image. It returns nil when the image is on the host,
// runtime.ErrImageNotFound, runtime.ErrDenied or runtime.ErrInvalid if a retry is
// useless, and any other error if it is not.
type ImagePuller interface {
	Pull(ctx context.Context, ref string, a runtime.Auth, progress func(runtime.Progress)) error
}

// Puller pulls images as jobs, so that no reconcile waits for a registry. An image that many
// containers request is pulled once. A container has one pull at a time, and containers take
// turns. A pull that no container requests any more is cancelled.
type Puller struct {
	engine ImagePuller
	jobs   *jobs.Jobs[runtime.Progress]
	log    *slog.Logger

	calls sync.Mutex // held by Request, Refresh and Forget: guards of
	of    map[string]*imagePulls

	mu    sync.Mutex      // guards wants
	wants map[string]want // by internal_id
}

// imagePulls are the pulls of one image that containers request.
type imagePulls struct {
	begun, ended uint64 // pulls so far; one runs if they differ
	failures     int    // in a row
	err          error  // of the last one that ended
	retryAt      time.Time
}

// want is the request of a container.
type want struct {
	image string
	after uint64 // the result of a later pull than this one is its answer
}

// NewPuller returns a Puller that pulls as many images at once as it has workers,
// while Run runs.
func NewPuller(engine ImagePuller, workers int, log *slog.Logger) *Puller {
	return &Puller{engine: engine, log: log, of: map[string]*imagePulls{}, wants: map[string]want{},
		jobs: jobs.New[runtime.Progress](jobs.Options{Name: "pull of an image", Limit: func() int { return workers }, Log: log})}
}

// Run pulls images until ctx ends.
func (p *Puller) Run(ctx context.Context) error { return p.jobs.Run(ctx) }

// Source is a controller.Source of the containers whose pull is done.
func (p *Puller) Source(ctx context.Context, notify func(id string)) error {
	return p.jobs.Source(ctx, func(image string) {
		waiting := p.waiting(image)
		for _, id := range waiting {
			notify(id)
		}
		if len(waiting) == 0 {
			p.jobs.Forget(image) // it was cancelled
		}
	})
}

// waiting returns the containers that request an image.
func (p *Puller) waiting(image string) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, w := range p.wants {
		if w.image == image {
			ids = append(ids, id)
		}
	}
	return ids
}

// Request returns the state of the pull of an image that container id needs and that is not
// on the host, and begins one if there is none. A failure is returned until its RetryAt; a
// pull that has succeeded failed too, because the engine does not have the image.
func (p *Puller) Request(id, ref string, auth runtime.Auth) Pull {
	p.calls.Lock()
	defer p.calls.Unlock()
	image := imageKey(ref, auth)
	own, job := p.observe(image)
	w := p.join(id, image, own.ended)
	if own.err == nil && own.begun == own.ended && own.ended > w.after {
		p.end(own, ref, errNotKept)
	}
	if own.err != nil && own.begun == own.ended && time.Now().Before(own.retryAt) {
		return Pull{Done: true, Err: own.err, RetryAt: own.retryAt}
	}
	p.begin(own, job, image, ref, auth)
	return Pull{Progress: job.Value}
}

// Refresh is Request for an image that may be on the host already: it returns only the
// result of a pull that began after the first call for it, and returns it once.
func (p *Puller) Refresh(id, ref string, auth runtime.Auth) Pull {
	p.calls.Lock()
	defer p.calls.Unlock()
	image := imageKey(ref, auth)
	own, job := p.observe(image)
	if own.ended > p.join(id, image, own.begun).after {
		p.leave(id)
		return Pull{Done: true, Err: own.err}
	}
	p.begin(own, job, image, ref, auth)
	return Pull{Progress: job.Value}
}

// Forget removes the request of container id: it needs no image any more, or is gone.
func (p *Puller) Forget(id string) {
	p.calls.Lock()
	defer p.calls.Unlock()
	p.leave(id)
}

// imageKey identifies the pulls of an image. It is in the log, so it has no password.
func imageKey(ref string, auth runtime.Auth) string {
	if auth.Username == "" {
		return ref
	}
	return ref + " as " + auth.Username + " of " + auth.Host
}

// join records that container id requests an image. After is for a request that it does not
// have yet.
func (p *Puller) join(id, image string, after uint64) want {
	p.mu.Lock()
	w, has := p.wants[id]
	p.mu.Unlock()
	if has && w.image == image {
		return w
	}
	p.leave(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	w = want{image, after}
	p.wants[id] = w
	return w
}

// leave removes the request of container id, and cancels a pull that nobody requests any
// more.
func (p *Puller) leave(id string) {
	p.mu.Lock()
	w, has := p.wants[id]
	delete(p.wants, id)
	p.mu.Unlock()
	if has && len(p.waiting(w.image)) == 0 {
		delete(p.of, w.image)
		p.jobs.Cancel(w.image)
		p.jobs.Forget(w.image)
	}
}

// observe returns the pulls of an image, and its job. A job that has ended is forgotten; one
// that was cancelled, and whose image is requested again, has no result.
func (p *Puller) observe(image string) (*imagePulls, jobs.Job[runtime.Progress]) {
	own := p.of[image]
	if own == nil {
		own = &imagePulls{}
		p.of[image] = own
	}
	job := p.jobs.Get(image)
	if job.State != jobs.Ended {
		return own, job
	}
	p.jobs.Forget(image)
	if own.begun > own.ended {
		own.ended = own.begun
		p.end(own, image, job.Err)
	}
	return own, jobs.Job[runtime.Progress]{}
}

// begin begins a pull unless one runs, or others come first: the next reconcile tries again.
func (p *Puller) begin(own *imagePulls, job jobs.Job[runtime.Progress], image, ref string, auth runtime.Auth) {
	if job.State != jobs.None {
		return
	}
	level := slog.LevelInfo
	if own.failures > 0 {
		level = slog.LevelDebug // it is tried again
	}
	pull := func(ctx context.Context, report func(runtime.Progress)) error {
		p.log.Log(ctx, level, "pulling image", "image", ref)
		return p.engine.Pull(ctx, ref, auth, report)
	}
	if started, _ := p.jobs.Start(jobs.Request[runtime.Progress]{ID: image, Key: image, Work: pull}); started {
		own.begun++
	}
}

// end records the result of a pull, and logs the 1st, 2nd, 4th, 8th of consecutive failures
// and so on, and each whose cause is another.
func (p *Puller) end(own *imagePulls, image string, err error) {
	last := own.err
	own.err = err
	if err == nil {
		if own.failures > 0 && !errors.Is(last, errNotKept) {
			p.log.Info("pulled an image after failures", "image", image, "failures", own.failures)
		}
		return // the failures count until the image is used: the engine may not keep it
	}
	own.retryAt = time.Now().Add(pullBackOff().After(own.failures))
	own.failures++
	if controller.PowerOfTwo(own.failures) || last == nil || last.Error() != err.Error() {
		p.log.Warn("pulling an image failed", "image", image, "failures", own.failures, "err", err)
	}
}
