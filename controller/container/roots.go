package container

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// The measurement of files outside volumes.
const (
	rootPeriod  = 15 * time.Second // between two measurements of all containers
	rootTimeout = 2 * time.Second  // of one container; one that takes longer is slow
	slowTimeout = 2 * time.Minute  // of a slow container
	rootTries   = 3                // measurements in a row that end with slowTimeout: it counts as over the limit
	rootSlack   = 1 << 20          // bytes that the engine writes into an idle container
	rootPoll    = time.Second      // between two readings of the engine's free space
	rootShare   = 4                // rests after a measurement, in multiples of its duration
	minRootLoss = 16 << 20         // bytes of lost space that cause a measurement, at least
	maxRootLoss = 512 << 20        // and at most
)

// RootMeter measures the disk usage of a container outside its volume: its writable
// layer and open files without a name. It need not look for such files if noneOpen is the
// engine's id of the container. With an error the usage is partial if it has a ContainerID.
type RootMeter func(ctx context.Context, n runtime.Name, volumeID, noneOpen string) (RootUsage, error)

// RootUsage is the disk usage of one container of the engine outside its volume.
type RootUsage struct {
	ContainerID string // the engine's
	v1.Usage

	Open       int64 // bytes of open files without a name, which Usage includes
	Unmeasured bool  // it took too long to be measured, and counts as over docker.root_limit
}

// Roots measures the disk usage of running containers outside their volumes. A nil
// *Roots measures nothing.
type Roots struct {
	Store   *store.Store
	Measure RootMeter
	Limit   func() int64 // docker.root_limit, bytes; 0 is none
	Free    func() int64 // bytes of the engine's disk; 0 is unknown; nil: always unknown
	Log     *slog.Logger

	mu     sync.Mutex
	used   map[string]RootUsage // by internal_id
	failed map[string]bool      // whether the last measurement failed, by internal_id
	slow   map[string]bool      // measured apart from the others, by internal_id
	tries  map[string]timeouts  // by internal_id
	read   map[string]openRead  // by internal_id
}

// timeouts are measurements of one container of the engine in a row that took too long.
type timeouts struct {
	containerID string
	n           int
}

// limit returns docker.root_limit in bytes; 0 is none.
func (r *Roots) limit() int64 {
	if r == nil {
		return 0
	}
	return r.Limit()
}

// of returns the last measured usage of a run outside its volume, and whether it
// was measured.
func (r *Roots) of(id string, run runtime.State) (u v1.Usage, known bool) {
	if r == nil || run.StartedAt.IsZero() {
		return v1.Usage{}, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	used := r.used[id]
	if used.ContainerID != run.ContainerID {
		return v1.Usage{}, false
	}
	return used.Usage, true
}

// last returns the last measured usage of a container's run; zero if none was measured.
func (r *Roots) last(id string) RootUsage {
	if r == nil {
		return RootUsage{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used[id]
}

// withoutSlack subtracts rootSlack.
func withoutSlack(u v1.Usage) v1.Usage {
	return v1.Usage{Bytes: max(0, u.Bytes-rootSlack), Files: u.Files}
}

// Source returns a source that measures all running containers periodically, and as soon
// as the engine's disk loses space. It names those whose usage changed. Slow containers,
// such as one with millions of files whose engine walks them, are measured apart, so that
// they do not delay the others.
func (r *Roots) Source() controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		ctx, cancel := context.WithCancel(ctx)
		var apart sync.WaitGroup
		defer apart.Wait()
		defer cancel()
		apart.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if r.anySlow() {
					_, _ = r.round(ctx, true, notify) // the store's error is that of the other round
				}
				r.await(ctx, began, 0)
			}
		})
		for ctx.Err() == nil {
			began, free := time.Now(), r.free()
			running, err := r.round(ctx, false, notify)
			if err != nil {
				return err
			}
			r.forget(running)
			r.await(ctx, began, free)
		}
		return nil
	}
}

// round measures the running containers that are slow, or the others, and returns all.
func (r *Roots) round(ctx context.Context, slow bool, notify func(string)) (map[string]rootTarget, error) {
	running, err := r.running()
	for id, target := range running {
		if err == nil && r.isSlow(id) == slow && r.measure(ctx, target, slow) {
			notify(id)
		}
	}
	return running, err
}

func (r *Roots) anySlow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, slow := range r.slow {
		if slow {
			return true
		}
	}
	return false
}

func (r *Roots) isSlow(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slow[id]
}

// await waits for the next measurement: until rootPeriod after the last one began, or
// until the disk has lost space since. A container that writes fast would exceed its limit
// by far within rootPeriod. Writing to volumes loses space too: measurements that are
// caused so take a bounded part of the time.
func (r *Roots) await(ctx context.Context, began time.Time, free int64) {
	took := time.Since(began)
	sleep(ctx, max(rootPoll, min(rootShare*took, rootPeriod-took)))
	if free == 0 { // it is unknown whether the disk loses space
		sleep(ctx, rootPeriod-time.Since(began))
	}
	for ctx.Err() == nil && time.Since(began) < rootPeriod && !r.lost(free) {
		sleep(ctx, rootPoll)
	}
}

// lost reports whether the disk has less free space than before, by a part of the limit.
func (r *Roots) lost(before int64) bool {
	limit, now := r.limit(), r.free()
	return limit > 0 && now > 0 && before-now >= min(max(limit/16, minRootLoss), maxRootLoss)
}

// free returns the free bytes of the engine's disk; 0 is unknown.
func (r *Roots) free() int64 {
	if r.Free == nil {
		return 0
	}
	return r.Free()
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// rootTarget is a container to measure.
type rootTarget struct {
	name   runtime.Name
	volume string
}

// running returns the running containers by internal_id.
func (r *Roots) running() (map[string]rootTarget, error) {
	list := map[string]rootTarget{}
	err := r.Store.View(func(tx *store.Tx) error {
		all, err := store.Containers.List(tx)
		for _, c := range all {
			switch {
			case c.Status.Phase.Active():
				list[c.Meta.ID] = rootTarget{serverName(c.Meta.ID), c.Spec.VolumeID}
			case c.Status.Phase == v1.Installing && c.Status.InstallVolume != "":
				list[c.Meta.ID] = rootTarget{installerName(c.Meta.ID), c.Spec.VolumeID}
			}
		}
		return err
	})
	return list, err
}

// measure measures one container and reports whether the result may change its next
// step. One that takes longer than rootTimeout is slow from now on, and one that does not
// is not.
func (r *Roots) measure(ctx context.Context, target rootTarget, slow bool) (changed bool) {
	n, limit := target.name, rootTimeout
	if slow {
		limit = slowTimeout
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	noneOpen, free := r.noneOpen(n.ID), r.free()
	u, err := r.Measure(limited, n, target.volume, noneOpen)
	if errors.Is(err, runtime.ErrNotFound) || ctx.Err() != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used == nil {
		r.used, r.failed, r.slow, r.tries, r.read = map[string]RootUsage{}, map[string]bool{}, map[string]bool{}, map[string]timeouts{}, map[string]openRead{}
	}
	if slow {
		r.countTimeout(n, &u, limited.Err() != nil)
	}
	r.slow[n.ID] = time.Since(began) >= rootTimeout
	if becomes := r.slow[n.ID] && !slow; !becomes { // it is measured again, with more time
		if err != nil && !r.failed[n.ID] {
			r.Log.Warn("cannot measure all that a container wrote outside its volume", "container", n.ID, "role", n.Role, "err", err)
		}
		r.failed[n.ID] = err != nil
	}
	if u.ContainerID != noneOpen || err != nil {
		r.read[n.ID] = openRead{began, free, u.Open == 0 && err == nil}
	}
	old := r.used[n.ID]
	if old.ContainerID != u.ContainerID {
		old = RootUsage{} // it was that of a removed container
	}
	if u.ContainerID == "" || err != nil && u.Bytes <= old.Bytes {
		return false // a partial usage counts only if it exceeds the last one
	}
	r.used[n.ID] = u
	grown := u.Bytes - old.Bytes
	return grown >= rootSlack || grown <= -rootSlack || u.Exceeds(r.Limit()) != old.Exceeds(r.Limit())
}

// countTimeout counts measurements that took too long in a row. After rootTries of them
// the usage is over the limit: without a consequence a layer that nobody can measure would
// have no limit. A measurement that the engine does not answer at all has no ContainerID,
// and says nothing. r.mu is held.
func (r *Roots) countTimeout(n runtime.Name, u *RootUsage, timedOut bool) {
	last := r.tries[n.ID]
	switch {
	case u.ContainerID == "":
		return
	case !timedOut:
		delete(r.tries, n.ID)
		return
	case last.containerID != u.ContainerID:
		last = timeouts{containerID: u.ContainerID}
	}
	last.n++
	r.tries[n.ID] = last
	if limit := r.Limit(); last.n >= rootTries && limit > 0 {
		u.Bytes, u.Unmeasured = max(u.Bytes, limit+1), true
		r.Log.Warn("cannot measure in time what a container wrote outside its volume: it counts as over docker.root_limit",
			"container", n.ID, "role", n.Role, "timeout", slowTimeout, "tries", last.n)
	}
}

// forget drops the measurements of containers that have no record any more.
func (r *Roots) forget(running map[string]rootTarget) {
	for _, id := range r.measured() {
		if _, runs := running[id]; runs {
			continue
		}
		err := r.Store.View(func(tx *store.Tx) error { _, err := store.Containers.Get(tx, id); return err })
		if errors.Is(err, store.ErrNotFound) {
			r.mu.Lock()
			delete(r.used, id)
			delete(r.failed, id)
			delete(r.slow, id)
			delete(r.tries, id)
			delete(r.read, id)
			r.mu.Unlock()
		}
	}
}

// measured returns the ids that were measured.
func (r *Roots) measured() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.slow))
}
