package volume

import (
	"cmp"
	"context"
	"errors"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

const (
	claimPoll    = 250 * time.Millisecond // between two looks at a claim that is not ready, at first
	maxClaimPoll = 30 * time.Second       // and later
	maxCause     = 500                    // bytes of the cause in a message
)

// chooseClass gives a new volume a claim of its own if it is to have one. That is recorded before there is a
// claim, so that no claim is left without a record.
func (r *Reconciler) chooseClass(v v1.Volume) (v1.Volume, error) {
	if r.Class == "" || v.Status.Class != "" || v.Status.Created || v.Spec.Storage != "" || r.Claims == nil {
		return v, nil
	}
	v.Status.Class = r.Class
	return v, r.Store.Update(func(tx *store.Tx) error {
		return store.Volumes.SetStatus(tx, v.Meta.ID, func(s *v1.VolumeStatus) { s.Class = r.Class })
	})
}

// ensureClaim requests the claim of a volume whose directory was never there. It returns what it waits for; empty: the
// directory can be used, or the volume has no claim. A claim that was removed later is never created again: it would be empty.
func (r *Reconciler) ensureClaim(ctx context.Context, v v1.Volume, limit int64) (waits string, err error) {
	if v.Status.Class == "" || v.Status.Created || r.Claims == nil {
		return "", nil
	}
	id := v.Meta.ID
	waits, err = r.Claims.EnsureClaim(ctx, id, v.Status.Class, cmp.Or(limit, r.ClaimSize))
	switch {
	case err != nil:
		return err.Error(), err
	case waits != "":
		return waits, nil
	}
	if errors.Is(r.Directories.Check(id), v1.ErrDirectoryMissing) {
		return "it is bound, and its StorageClass " + v.Status.Class + " has not made the directory " + id + " in the claim kubernetes.claim", nil
	}
	return "", nil
}

// resizeClaim lets the claim of a volume request its limit. It returns the condition ClaimResized. What the cluster refuses is
// tried again; berth's own limit holds.
func (r *Reconciler) resizeClaim(ctx context.Context, v v1.Volume, limit int64) (v1.Condition, error) {
	c := v1.FindCondition(v.Status.Conditions, v1.ClaimResized)
	if requested, known := r.requested.Load(v.Meta.ID); limit > 0 && (!known || requested.(int64) < limit) {
		if err := r.Claims.ResizeClaim(ctx, v.Meta.ID, limit); err != nil {
			text := "the claim of the volume is smaller than its limit: " + v1.ClippedText(err.Error(), maxCause)
			return v1.Condition{Type: v1.ClaimResized, Status: v1.False, Reason: "NotResized", Message: text}, err
		}
		r.requested.Store(v.Meta.ID, limit)
	}
	return v1.Condition{Type: v1.ClaimResized, Status: v1.True, Reason: "Resized", Message: "the claim of the volume has its size",
		Since: c.Since}, nil
}
