package download

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"berth/controller"
)

// The permits of downloads.
const (
	maxRunning   = 8 // of all volumes
	maxPerVolume = 2
	maxForSecond = 4 // that run when a volume gets its second one: fewer volumes cannot hold all permits

	turnTime  = 10 * time.Minute // that a download has its permit while others wait
	maxOpen   = 64               // that run or wait for their next turn, each with an open file
	placeKept = 10 * time.Second // a volume that does not ask again leaves the queue
)

var errPaused = errors.New("others wait, and too many downloads wait for their next turn: request it again")

// Fetch downloads a pull into its volume, in turns. Its errors are texts for clients.
type Fetch func(ctx context.Context, volume, url, path, checksum string, turn *Turn) error

// Jobs runs downloads, each in a goroutine, while Run runs.
type Jobs struct {
	Log *slog.Logger // set before Run; nil logs nothing

	fetch Fetch

	mu     sync.Mutex
	base   context.Context // nil: Run does not run
	jobs   map[string]*job // by id
	queue  []place         // volumes that wait for a permit, in the order of their first request
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
	began  time.Time // its turn
	paused bool      // without a permit, until its next turn
}

// progress is what is known of a job.
type progress struct {
	exists, done bool
	paused       bool
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
	return j.permits(volume, nil)
}

// permits is free with mu held, for a new download or for one that is paused. The volume
// gets a place in the queue if others have the permits.
func (j *Jobs) permits(volume string, resumed *job) bool {
	running, ofVolume := 0, 0
	for _, one := range j.jobs {
		if one.done || one == resumed {
			continue
		}
		if !one.paused {
			running++
		}
		if one.volume == volume && (resumed == nil || !one.paused) {
			ofVolume++
		}
	}
	if j.base == nil || ofVolume >= maxPerVolume || ofVolume > 0 && running >= maxForSecond {
		return false
	}
	return running+j.ahead(volume) < maxRunning
}

// start begins a download. It returns false if no permit is free.
func (j *Jobs) start(id, volume, url, path, checksum string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.permits(volume, nil) {
		return false
	}
	j.leave(volume)
	ctx, cancel := context.WithCancel(j.base)
	own := &job{volume: volume, cancel: cancel, total: -1, began: time.Now()}
	j.jobs[id] = own
	j.all.Go(func() {
		defer j.recovered(id, own)
		defer cancel()
		err := j.fetch(ctx, volume, url, path, checksum, &Turn{j, own})
		j.mu.Lock()
		own.done, own.err = true, err
		notify := j.notify
		j.mu.Unlock()
		notify(id)
	})
	return true
}

// recovered ends the job of a download whose goroutine panics.
func (j *Jobs) recovered(id string, own *job) {
	p := recover()
	if p == nil {
		return
	}
	log := j.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	err := controller.Panicked(log, "download", p, "pull", id, "volume", own.volume)
	j.mu.Lock()
	own.done, own.err = true, err
	notify := j.notify
	j.mu.Unlock()
	notify(id)
}

// get returns what is known of the job of a download.
func (j *Jobs) get(id string) progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	own := j.jobs[id]
	if own == nil {
		return progress{}
	}
	return progress{true, own.done, own.paused, own.bytes, own.total, own.err}
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
		if !one.done && !one.paused {
			n++
		}
	}
	return n
}
