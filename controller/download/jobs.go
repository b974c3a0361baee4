package download

import (
	"context"
	"sync"
)

// The permits of downloads.
const (
	maxRunning   = 8 // of all volumes
	maxPerVolume = 2
	maxForSecond = 4 // that run when a volume gets its second one: fewer volumes cannot hold all permits
)

// Fetch downloads a pull into its volume. Its errors are texts for clients.
type Fetch func(ctx context.Context, volume, url, path, checksum string, progress func(bytes, total int64)) error

// Jobs runs downloads, each in a goroutine, while Run runs.
type Jobs struct {
	fetch Fetch

	mu     sync.Mutex
	base   context.Context // nil: Run does not run
	jobs   map[string]*job // by id
	notify func(id string)
	all    sync.WaitGroup
}

// job is a download that runs, or whose result was not collected.
type job struct {
	volume string
	cancel context.CancelFunc
	bytes  int64
	total  int64 // -1: unknown
	done   bool
	err    error
}

// progress is what is known of a job.
type progress struct {
	exists, done bool
	bytes, total int64
	err          error
}

// NewJobs returns Jobs that download with fetch.
func NewJobs(fetch Fetch) *Jobs {
	return &Jobs{fetch: fetch, jobs: map[string]*job{}, notify: func(string) {}}
}

// Run lets jobs run until ctx ends, and waits for them.
func (j *Jobs) Run(ctx context.Context) error {
	j.mu.Lock()
	j.base = ctx
	j.mu.Unlock()
	<-ctx.Done()
	j.mu.Lock()
	j.base = nil
	j.mu.Unlock()
	j.all.Wait()
	return nil
}

// Source names each download whose job has ended.
func (j *Jobs) Source(ctx context.Context, notify func(string)) error {
	j.mu.Lock()
	j.notify = notify
	j.mu.Unlock()
	<-ctx.Done()
	return nil
}

// free reports whether a permit is free for a download into a volume.
func (j *Jobs) free(volume string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.permits(volume)
}

// permits is free with mu held.
func (j *Jobs) permits(volume string) bool {
	running, ofVolume := 0, 0
	for _, one := range j.jobs {
		if one.done {
			continue
		}
		running++
		if one.volume == volume {
			ofVolume++
		}
	}
	limit := maxRunning
	if ofVolume > 0 {
		limit = maxForSecond
	}
	return j.base != nil && running < limit && ofVolume < maxPerVolume
}

// start begins a download. It returns false if no permit is free.
func (j *Jobs) start(id, volume, url, path, checksum string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.permits(volume) {
		return false
	}
	ctx, cancel := context.WithCancel(j.base)
	own := &job{volume: volume, cancel: cancel, total: -1}
	j.jobs[id] = own
	j.all.Go(func() {
		defer cancel()
		err := j.fetch(ctx, volume, url, path, checksum, func(bytes, total int64) {
			j.mu.Lock()
			own.bytes, own.total = bytes, total
			j.mu.Unlock()
		})
		j.mu.Lock()
		own.done, own.err = true, err
		notify := j.notify
		j.mu.Unlock()
		notify(id)
	})
	return true
}

// get returns what is known of the job of a download.
func (j *Jobs) get(id string) progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	own := j.jobs[id]
	if own == nil {
		return progress{}
	}
	return progress{true, own.done, own.bytes, own.total, own.err}
}

// stop cancels the job of a download, which ends soon after.
func (j *Jobs) stop(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if own := j.jobs[id]; own != nil {
		own.cancel()
	}
}

// forget drops the result of a job that has ended.
func (j *Jobs) forget(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if own := j.jobs[id]; own != nil && own.done {
		delete(j.jobs, id)
	}
}

// running returns the number of jobs that run.
func (j *Jobs) running() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.jobs {
		if !one.done {
			n++
		}
	}
	return n
}
