package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Directories makes, checks, measures and removes the directories of volumes.
type Directories interface {
	Ensure(id string) error
	Check(id string) error // v1.ErrDirectoryMissing, v1.ErrNotADirectory
	Remove(ctx context.Context, id string) error
	SetLimit(id string, limit int64, last v1.Usage)
	Used(id string) v1.Usage
	Scan(ctx context.Context, id string) (v1.Usage, error)
}

const (
	removeSlice = 2 * time.Second // of a removal; a worker is held no longer
	userWait    = time.Second     // between two looks whether a container still uses a volume
)

// Reconciler drives one volume at a time.
type Reconciler struct {
	Store       *store.Store
	Directories Directories
	Uses        *Uses
	Mounted     func(ctx context.Context, id string) (by string, err error) // a container of the engine's that mounts it; empty: none
}

var settled = controller.Result{}

// Reconcile takes one step for the volume with this id.
func (r *Reconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	v, limit, err := r.load(id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return settled, nil
	case err != nil:
		return settled, err
	case v.Meta.Deleted:
		return r.remove(ctx, id)
	}
	r.Directories.SetLimit(id, limit, v.Status.Usage())
	condition, err := r.directory(v)
	if err != nil {
		return settled, errors.Join(err, r.record(id, condition))
	}
	return settled, r.record(id, condition)
}

// load returns a volume and its limit in bytes.
func (r *Reconciler) load(id string) (v v1.Volume, limit int64, err error) {
	err = r.Store.View(func(tx *store.Tx) error {
		if v, err = store.Volumes.Get(tx, id); err == nil {
			limit, err = limitOf(tx, v)
		}
		return err
	})
	return v, limit, err
}

// directory makes the directory if it was never made, and looks at it otherwise.
// An error is for what may be gone at the next try.
func (r *Reconciler) directory(v v1.Volume) (v1.Condition, error) {
	look := r.Directories.Check
	if !v.Status.Created {
		look = r.Directories.Ensure
	}
	c := v1.Condition{Type: v1.DirectoryReady, Status: v1.False}
	err := look(v.Meta.ID)
	switch {
	case err == nil:
		c.Status, c.Reason, c.Message = v1.True, "Ready", "the directory can be used"
		return c, nil
	case errors.Is(err, v1.ErrDirectoryMissing):
		c.Reason, c.Message = "DirectoryMissing", "the directory is gone: restore it; berth never puts an empty one in its place"
		return c, nil
	case errors.Is(err, v1.ErrNotADirectory):
		c.Reason, c.Message = "NotADirectory", "something else stands where the directory was: put it back"
		return c, nil
	}
	c.Reason, c.Message = "Failed", "the directory cannot be made or opened: see the daemon's log"
	return c, err
}

// record keeps what was found out. What is known already is not written again.
func (r *Reconciler) record(id string, c v1.Condition) error {
	return r.Store.Update(func(tx *store.Tx) error {
		return store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) {
			s.Created = s.Created || c.Status == v1.True
			used := r.Directories.Used(id)
			s.Size, s.Files = used.Bytes, used.Files
			s.Conditions = v1.SetCondition(s.Conditions, c, tx.Now())
		})
	})
}

// remove takes the directory away, a slice of time at once, when no container
// is left that uses it, and then the record.
func (r *Reconciler) remove(ctx context.Context, id string) (controller.Result, error) {
	if r.Uses.any(id) {
		return controller.Result{Waiting: true, RequeueAfter: userWait}, nil
	}
	// The engine decides: a container may be there that no record knows.
	by, err := r.Mounted(ctx, id)
	if err != nil {
		return settled, err
	}
	if by != "" {
		return settled, fmt.Errorf("volume %s: its directory stays while container %s has it mounted", id, by)
	}
	slice, cancel := context.WithTimeout(ctx, removeSlice)
	defer cancel()
	err = r.Directories.Remove(slice, id)
	if err != nil && slice.Err() != nil && ctx.Err() == nil {
		return controller.Result{Requeue: true}, nil
	}
	if err != nil {
		return settled, err
	}
	return settled, r.Store.Update(func(tx *store.Tx) error { return store.Volumes.Purge(tx, id) })
}
