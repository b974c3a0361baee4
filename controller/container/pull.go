package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

// How often the progress of a pull is looked at, and how many may wait.
const (
	pullLook  = time.Second
	pullQueue = 1024
)

// pull begins to fetch an image, or looks how far that is.
func (s step) pull(image string) (controller.Result, error) {
	p := s.Pulls.Want(s.c.Meta.ID, image, s.Auth(s.c.Spec.RegistryAuth))
	switch {
	case !p.Done:
		return lookAfter(pullLook), s.notePull(image, p.Progress)
	case p.Err == nil:
		return again, nil
	case errors.Is(p.Err, runtime.ErrImageNotFound):
		return s.noImage(v1.ReasonImageNotFound, p.Err)
	case errors.Is(p.Err, runtime.ErrDenied):
		return s.noImage("ImageDenied", p.Err)
	case errors.Is(p.Err, runtime.ErrInvalid):
		return s.noImage("ImageInvalid", p.Err)
	}
	return settled, s.trouble(p.Err)
}

func (s step) notePull(image string, p runtime.Progress) error {
	text := fmt.Sprintf("pulling image %s: %d of %d layers, %d of %d MiB", image, p.Done, p.Layers, p.Current>>20, p.Total>>20)
	if s.c.Status.Message == text {
		return nil
	}
	return s.note(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		set(st, now, v1.ImageAvailable, v1.Unknown, "Pulling", "the image is being pulled")
	})
}

// noImage is a registry's definite no. An installation fails for good with it;
// an installed container waits for the image to come back.
func (s step) noImage(reason string, err error) (controller.Result, error) {
	if s.c.Status.Installed == s.c.Spec.Install {
		return settled, s.trouble(err)
	}
	return again, s.note(func(st *v1.ContainerStatus, now time.Time) {
		st.Phase, st.Installed, st.InstallFailed, st.Message = v1.Failed, s.c.Spec.Install, true, err.Error()
		set(st, now, v1.ImageAvailable, v1.False, reason, err.Error())
		set(st, now, v1.Installed, v1.False, reason, err.Error())
	}, err.Error())
}

// Pull is how far an image is.
type Pull struct {
	Done     bool
	Err      error // of a pull that is done
	Progress runtime.Progress
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
	state   Pull
	waiting map[string]bool // ids that have not seen the end
}

// NewPuller makes a Puller that fetches so many images at once, while Run runs.
func NewPuller(engine ImagePuller, workers int, log *slog.Logger) *Puller {
	return &Puller{engine: engine, workers: max(1, workers), log: log, queue: make(chan pullKey, pullQueue),
		jobs: map[pullKey]*pullJob{}, notify: func(string) {}}
}

// Want says how far the image is that container id needs, and begins to fetch
// it. Each id is told the end of a pull once; asking again begins another.
func (p *Puller) Want(id, ref string, auth runtime.Auth) Pull {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := pullKey{ref, auth}
	job := p.jobs[key]
	if job != nil && job.state.Done && job.waiting[id] {
		delete(job.waiting, id)
		return job.state
	}
	if job == nil || job.state.Done {
		select {
		case p.queue <- key:
		default:
			return Pull{} // too many wait: asked again at the next look
		}
		job = &pullJob{waiting: map[string]bool{}}
		p.jobs[key] = job
	}
	job.waiting[id] = true
	return job.state
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
	p.mu.Lock()
	job := p.jobs[key]
	job.state.Done, job.state.Err = true, err
	ids, notify := make([]string, 0, len(job.waiting)), p.notify
	for id := range job.waiting {
		ids = append(ids, id)
	}
	p.mu.Unlock()
	for _, id := range ids {
		notify(id)
	}
}
