package download

import (
	"context"
	"slices"
	"time"
)

// place is that of a volume in the queue for a permit.
type place struct {
	volume string
	asked  time.Time // last
}

// ahead returns how many volumes are before this one in the queue, where it gets a place.
// j.mu is held.
func (j *Jobs) ahead(volume string) int {
	own := slices.IndexFunc(j.queue, func(p place) bool { return p.volume == volume })
	if own < 0 {
		j.queue = append(j.queue, place{volume: volume})
		own = len(j.queue) - 1
	}
	j.queue[own].asked = time.Now()
	j.expire()
	return slices.IndexFunc(j.queue, func(p place) bool { return p.volume == volume })
}

// expire removes the places of volumes that ask no more. j.mu is held.
func (j *Jobs) expire() {
	j.queue = slices.DeleteFunc(j.queue, func(p place) bool { return time.Since(p.asked) > placeKept })
}

// leave removes the place of a volume, whose next download begins at the end of the queue.
// j.mu is held.
func (j *Jobs) leave(volume string) {
	j.queue = slices.DeleteFunc(j.queue, func(p place) bool { return p.volume == volume })
}

// Turn is the time in which a download has a permit. It ends turnTime after it began, as
// soon as others wait, and is repeated.
type Turn struct {
	jobs *Jobs
	own  *job
}

// Progress records the bytes received and the announced total; -1 is unknown.
func (t *Turn) Progress(bytes, total int64) {
	t.jobs.mu.Lock()
	defer t.jobs.mu.Unlock()
	t.own.bytes, t.own.total = bytes, total
}

// Over reports whether the turn is over: it has lasted turnTime, and more volumes wait
// than permits are free or held by downloads with an older turn.
func (t *Turn) Over() bool {
	j := t.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	if time.Since(t.own.began) < turnTime {
		return false
	}
	j.expire()
	running, older := 0, 0
	for _, one := range j.jobs {
		if one.done || one.paused {
			continue
		}
		running++
		if one.began.Before(t.own.began) {
			older++
		}
	}
	return len(j.queue) > maxRunning-running+older
}

// Next ends the turn, waits for at most a second, and reports whether the next one has
// begun. It returns an error if too many downloads wait.
func (t *Turn) Next(ctx context.Context) (begun bool, err error) {
	begun, err = t.resume()
	if begun || err != nil {
		return begun, err
	}
	wait := time.NewTimer(observe)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return false, ctx.Err()
}

func (t *Turn) resume() (begun bool, err error) {
	j := t.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	if !t.own.paused {
		open := 0
		for _, one := range j.jobs {
			if !one.done {
				open++
			}
		}
		if open > maxOpen {
			return false, errPaused
		}
		t.own.paused = true
	}
	if !j.permits(t.own.volume, t.own) {
		return false, nil
	}
	j.leave(t.own.volume)
	t.own.paused, t.own.began = false, time.Now()
	return true, nil
}
