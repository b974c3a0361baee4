package container

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// The measurement of files outside volumes.
const (
	rootPeriod  = time.Minute      // between two measurements of all containers, at most
	rootTimeout = 30 * time.Second // of one container; one that takes longer counts as over the limit
	rootSlack   = 1 << 20          // bytes that the engine writes into an idle container
)

// RootMeter measures the disk usage of a container outside its volume: its writable
// layer and open files without a name. places are those of the last measurement, which may have been of
// another container. With an error the usage is partial if it has a ContainerID.
type RootMeter func(ctx context.Context, n runtime.Name, places runtime.Writable) (RootUsage, error)

// RootUsage is the disk usage of one container of the engine outside its volume.
type RootUsage struct {
	ContainerID string // the engine's
	Places      runtime.Writable
	v1.Usage

	Unmeasured bool // it could not be measured as a whole, and counts as over docker.root_limit
	InFlight   int  // handles that were sent over sockets: of files that nobody can measure

	visible visible // of the last measurement without handles in flight
}

// visible is what was known when all files of a container could be measured: with what the disk has
// more since then, it is the most that its files can occupy.
type visible struct {
	known       bool
	bytes, disk int64
}

// Roots measures the disk usage of running containers outside their volumes. A nil
// *Roots measures nothing.
type Roots struct {
	Store   *store.Store
	Measure RootMeter
	Limit   func() int64  // docker.root_limit, bytes; 0 is none
	Period  time.Duration // between two measurements of all containers, at most a minute; 0 is a minute
	Disk    func() int64  // used bytes of the disks that containers write to
	Log     *slog.Logger

	before int64 // of Disk, at the round before this one; 0: there was none

	mu   sync.Mutex
	used map[string]RootUsage // by internal_id
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
func (r *Roots) of(id string, run runtime.State) (u RootUsage, known bool) {
	if r == nil || run.StartedAt.IsZero() {
		return RootUsage{}, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	used := r.used[id]
	if used.ContainerID != run.ContainerID {
		return RootUsage{}, false
	}
	return used, true
}

// withoutSlack subtracts rootSlack.
func withoutSlack(u v1.Usage) v1.Usage {
	return v1.Usage{Bytes: max(0, u.Bytes-rootSlack), Files: u.Files}
}

// Source returns a source that measures all running containers periodically, one after
// the other, and names those whose usage changed.
func (r *Roots) Source() controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		if r == nil {
			<-ctx.Done()
			return nil
		}
		tick := time.NewTicker(min(cmp.Or(r.Period, rootPeriod), rootPeriod))
		defer tick.Stop()
		for ctx.Err() == nil {
			running, disk := r.running(), r.Disk()
			for _, target := range running {
				if ctx.Err() == nil && r.measure(ctx, target) {
					notify(target.ID)
				}
			}
			r.before = disk
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		return nil
	}
}

// running returns the running containers. It drops the measurements of containers that
// have no record any more.
func (r *Roots) running() (list []runtime.Name) {
	known := map[string]bool{}
	for _, c := range store.Containers.List(r.Store.Read()) {
		known[c.Meta.ID] = true
		switch {
		case c.Status.Phase.Active():
			list = append(list, serverName(c.Meta.ID))
		case c.Status.Phase == v1.Installing && c.Status.InstallVolume != "":
			list = append(list, installerName(c.Meta.ID))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.used, func(id string, _ RootUsage) bool { return !known[id] })
	return list
}

// places returns those of the last measurement of a container; zero if there was none.
func (r *Roots) places(target runtime.Name) runtime.Writable {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used[target.ID].Places
}

// lastVisible returns the last state in which a container had no handles in flight. A new one
// had no files in the round before.
func (r *Roots) lastVisible(id string, u RootUsage) visible {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.used[id]
	switch {
	case u.InFlight == 0, r.before == 0:
		return visible{true, u.Bytes, r.Disk()}
	case old.ContainerID != u.ContainerID || !old.visible.known:
		return visible{true, 0, r.before}
	}
	return old.visible
}

// measure measures one container and reports whether the result may change its next
// step. Without a consequence, a layer that nobody can measure in time would have no
// limit: it counts as over it. A measurement that the engine does not answer at all has no
// ContainerID, and says nothing.
func (r *Roots) measure(ctx context.Context, target runtime.Name) (changed bool) {
	limited, cancel := context.WithTimeout(ctx, rootTimeout)
	defer cancel()
	u, err := r.Measure(limited, target, r.places(target))
	if errors.Is(err, runtime.ErrNotFound) || ctx.Err() != nil {
		return false
	}
	id, limit := target.ID, r.Limit()
	u.visible = r.lastVisible(id, u)
	u.Unmeasured = u.Unmeasured || limited.Err() != nil || u.InFlight > 0 && u.visible.bytes+r.Disk()-u.visible.disk > limit
	if u.Unmeasured = u.Unmeasured && u.ContainerID != "" && limit > 0; u.Unmeasured {
		u.Bytes = max(u.Bytes, limit+1)
	}
	if err != nil {
		r.Log.Warn("cannot measure all that a container wrote outside its volume", "container", id, "role", target.Role,
			"over_limit", u.Unmeasured, "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.used[id]
	if old.ContainerID != u.ContainerID {
		old = RootUsage{} // it was that of a removed container
	}
	if u.ContainerID == "" || err != nil && u.Bytes <= old.Bytes {
		return false // a partial usage counts only if it exceeds the last one
	}
	if r.used == nil {
		r.used = map[string]RootUsage{}
	}
	r.used[id] = u
	grown := u.Bytes - old.Bytes
	return grown >= rootSlack || grown <= -rootSlack || u.Exceeds(limit) != old.Exceeds(limit)
}
