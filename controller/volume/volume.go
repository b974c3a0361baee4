package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Usages measures the disk usage of volumes.
type Usages interface {
	SetLimit(id string, limit int64, last v1.Usage)
	Limit(id string) int64 // as set
	Used(id string) v1.Usage
	Unmeasured(id string) string // why the last scan measured a part only, a reason of v1.UsageMeasured
	Scan(ctx context.Context, id string) (v1.Usage, error)
}

// Directories creates, checks, measures and removes the directories of volumes.
type Directories interface {
	Usages
	Present() (ids map[string]bool) // of the directories that are there; none if they cannot be listed
	Ensure(id string) error
	SetHardLimit(id string) error // to the limit, if the file system has hard limits
	Check(id string) error        // may return v1.ErrDirectoryMissing or v1.ErrNotADirectory
	Remove(ctx context.Context, id string) error
}

// Claims are the claims of a cluster. The directory of a volume with one of its own, which has its id as its name, is
// made for the claim by its StorageClass.
type Claims interface {
	// EnsureClaim creates a claim unless it exists, and returns why it cannot be used yet; empty: it can.
	EnsureClaim(ctx context.Context, id, class string, bytes int64) (waits string, err error)
	ResizeClaim(ctx context.Context, id string, bytes int64) error // to at least so many bytes
	RemoveClaim(ctx context.Context, id string) error
}

const (
	removeSlice = 2 * time.Second // after which a removal yields its worker and is requeued
	userWait    = time.Second     // between two checks whether a container still uses a volume
)

// Reconciler is the controller.Reconciler of volumes.
type Reconciler struct {
	Store       *store.Store
	Directories Directories
	Log         *slog.Logger

	Claims    Claims // nil: no volume has one of its own
	Class     string // StorageClass of those of new volumes without a storage; empty: they have none
	ClaimSize int64  // bytes that the claim of a volume without a limit requests

	// Mounted returns the internal_id of a container in the engine that mounts the volume,
	// or "" if there is none.
	Mounted func(ctx context.Context, id string) (by string, err error)

	requested sync.Map // the bytes that the claim of a volume is known to request, by volume
	reported  sync.Map // the reason that this process has logged last, by volume
}

// Reconcile takes one step for the volume with this id.
func (r *Reconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	v, limit, err := r.load(id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.reported.Delete(id)
		return controller.Result{}, nil
	case err != nil:
		return controller.Result{}, err
	case v.Meta.Deleted:
		return r.remove(ctx, v)
	}
	r.Directories.SetLimit(id, limit, v.Status.Usage())
	if v, err = r.chooseClass(v); err != nil {
		return controller.Result{}, err
	}
	condition, err := r.prepareDirectory(ctx, v, limit)
	conditions, res := []v1.Condition{condition}, controller.Result{}
	switch {
	case err == nil && condition.Reason == v1.ReasonClaimPending:
		res = controller.Result{Waiting: true, RequeueAfter: min(max(time.Since(v.Meta.CreatedAt)/4, claimPoll), maxClaimPoll)}
	case condition.Status == v1.True && v.Status.Class != "" && r.Claims != nil:
		var resized v1.Condition
		resized, err = r.resizeClaim(ctx, v, limit)
		conditions = append(conditions, resized)
	}
	if recorded(v.Status, conditions, r.Directories.Used(id)) && notMeasured(v.Status) == r.Directories.Unmeasured(id) {
		r.log(id, condition, condition)
		return res, err
	}
	return res, errors.Join(err, r.record(id, conditions))
}

// Resync returns a source that makes up for what no other source names: in each period it lists the directories
// once, and names the volumes whose record differs from what is known of them.
func (r *Reconciler) Resync(period time.Duration) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		for controller.Sleep(ctx, period) {
			present, tx := r.Directories.Present(), r.Store.Read()
			for _, v := range store.Volumes.List(tx) {
				if id := v.Meta.ID; !present[id] || r.Directories.Limit(id) != store.LimitOf(tx, v) || !settled(v, r.Directories) {
					notify(id)
				}
			}
		}
		return nil
	}
}

// settled reports whether a reconcile of a volume whose directory is there would change nothing.
func settled(v v1.Volume, known Usages) bool {
	return !v.Meta.Deleted && v.Status.Created && v.Status.Ready() &&
		v.Status.Usage() == known.Used(v.Meta.ID) && notMeasured(v.Status) == known.Unmeasured(v.Meta.ID)
}

// recorded reports whether the status of a volume has some conditions and a usage already.
// Only this controller writes it. An update that changes nothing would still wait for the
// writes of others, and they for it.
func recorded(s v1.VolumeStatus, conditions []v1.Condition, used v1.Usage) bool {
	for _, c := range conditions {
		before := v1.FindCondition(s.Conditions, c.Type)
		c.Since = before.Since
		if c != before {
			return false
		}
	}
	return s.Usage() == used
}

// load returns a volume and its limit in bytes.
func (r *Reconciler) load(id string) (v v1.Volume, limit int64, err error) {
	tx := r.Store.Read()
	if v, err = store.Volumes.Get(tx, id); err != nil {
		return v, 0, err
	}
	return v, store.LimitOf(tx, v), nil
}

// prepareDirectory creates the directory if it was never created, or lets it be made for a claim, checks it otherwise,
// and sets its hard limit. It returns the condition DirectoryReady, and an error if a retry may succeed.
func (r *Reconciler) prepareDirectory(ctx context.Context, v v1.Volume, limit int64) (v1.Condition, error) {
	c := v1.Condition{Type: v1.DirectoryReady, Status: v1.False}
	if waits, err := r.ensureClaim(ctx, v, limit); waits != "" {
		c.Reason, c.Message = v1.ReasonClaimPending, "the claim of the volume is not ready: "+v1.ClippedText(waits, maxCause)
		return c, err
	}
	prepare := r.Directories.Check
	if !v.Status.Created {
		prepare = r.Directories.Ensure
	}
	err := prepare(v.Meta.ID)
	if err == nil {
		err = r.Directories.SetHardLimit(v.Meta.ID)
	}
	switch {
	case err == nil:
		c.Status, c.Reason, c.Message = v1.True, "Ready", "the directory of the volume exists"
		return c, nil
	case errors.Is(err, v1.ErrDirectoryMissing):
		c.Reason, c.Message = v1.ReasonDirectoryMissing,
			"the directory of the volume is missing: restore it from a backup; berth does not create an empty one in its place"
		return c, nil
	case errors.Is(err, v1.ErrNotADirectory):
		c.Reason, c.Message = v1.ReasonNotADirectory,
			"the directory of the volume was replaced by something else: move the original directory back"
		return c, nil
	}
	c.Reason, c.Message = "Failed", "the directory of the volume cannot be created, limited or opened: the daemon's log has the error"
	return c, err
}

// record stores conditions, DirectoryReady first, and the usage in the status, and logs whether the
// directory can be used if that has changed.
func (r *Reconciler) record(id string, conditions []v1.Condition) error {
	c := conditions[0]
	var before v1.Condition
	worse, unmeasured := false, r.Directories.Unmeasured(id)
	err := r.Store.Update(func(tx *store.Tx) error {
		return store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) {
			s.Created = s.Created || c.Status == v1.True
			used := r.Directories.Used(id)
			s.Size, s.Files = used.Bytes, used.Files
			worse = setMeasured(s, unmeasured, tx.Now())
			before = v1.FindCondition(s.Conditions, c.Type)
			for _, c := range conditions {
				s.Conditions = v1.SetCondition(s.Conditions, c, tx.Now())
			}
		})
	})
	if err != nil {
		return err
	}
	if worse {
		r.Log.Warn(messageOf(unmeasured), "volume", id, "reason", unmeasured, "container", r.usersOf(id))
	}
	r.log(id, before, c)
	return nil
}

// log logs a change of the condition, and a directory that cannot be used once per start
// of berth.
func (r *Reconciler) log(id string, before, c v1.Condition) {
	reported, _ := r.reported.Swap(id, c.Reason)
	switch {
	case c.Status == v1.False && reported != c.Reason:
		r.Log.Warn(c.Message, "volume", id, "reason", c.Reason, "container", r.usersOf(id))
	case c.Status == v1.True && before.Status == v1.False:
		r.Log.Info("the directory of the volume is there again", "volume", id, "container", r.usersOf(id))
	}
}

// usersOf names the containers that use a volume.
func (r *Reconciler) usersOf(id string) string {
	return strings.Join(store.Containers.IDsBy(r.Store.Read(), id), ",")
}

// remove removes the directory once no container uses it, in slices of removeSlice, then its claim, and
// then the record.
func (r *Reconciler) remove(ctx context.Context, v v1.Volume) (controller.Result, error) {
	id := v.Meta.ID
	if r.used(id) {
		return controller.Result{Waiting: true, RequeueAfter: userWait}, nil
	}
	// The engine decides: it may have a container without a record.
	by, err := r.Mounted(ctx, id)
	if err != nil {
		return controller.Result{}, err
	}
	if by != "" {
		return controller.Result{}, fmt.Errorf("volume %s: cannot remove its directory: container %s mounts it; remove that container", id, by)
	}
	slice, cancel := context.WithTimeout(ctx, removeSlice)
	defer cancel()
	err = r.Directories.Remove(slice, id)
	if err != nil && slice.Err() != nil && ctx.Err() == nil {
		return controller.Result{RequeueAfter: time.Millisecond}, nil // the other volumes have their turn
	}
	if err != nil {
		return controller.Result{}, err
	}
	if v.Status.Class != "" && r.Claims != nil {
		if err = r.Claims.RemoveClaim(ctx, id); err != nil {
			return controller.Result{}, err
		}
	}
	err = r.Store.Update(func(tx *store.Tx) error { return store.Volumes.Purge(tx, id) })
	if err == nil {
		r.reported.Delete(id)
		r.requested.Delete(id)
	}
	return controller.Result{}, err
}

// used reports whether a container uses a volume.
func (r *Reconciler) used(volume string) bool {
	tx := r.Store.Read()
	return len(store.Containers.IDsBy(tx, volume))+len(store.VolumeHolders(tx, volume)) > 0
}

// Users returns a source that names the volume of each container that is created or changed. What
// the volume of a removed container may occupy is found by the resync.
func Users(s *store.Store) controller.Source {
	source := store.Containers.Source(s, store.SpecChanged)
	return func(ctx context.Context, notify func(string)) error {
		return source(ctx, func(id string) {
			// If it cannot be read it is gone, or the resync names its volume.
			if c, err := store.Containers.Get(s.Read(), id); err == nil {
				notify(c.Spec.VolumeID)
			}
		})
	}
}
