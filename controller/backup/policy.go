package backup

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// policies is the controller.Reconciler of backup policies.
type policies struct{ Options }

// PolicyObserved is what PlanPolicy knows beside the records of a policy.
type PolicyObserved struct {
	Now        time.Time
	Jitter     time.Duration // to add to the next time that is counted from now
	Unfinished bool          // a backup of the policy is pending or running
}

// PlanPolicy returns whether a backup is due, and the time of the next one. A run that
// was missed is made up once. While a backup of the policy has not finished, the next
// one waits. It reads nothing and changes nothing.
func PlanPolicy(p v1.BackupPolicy, o PolicyObserved) (due bool, next time.Time) {
	every := time.Duration(p.Spec.Every)
	fresh := o.Now.Add(every + o.Jitter)
	at := p.Status.NextRunAt
	switch {
	case at == nil, p.Status.Every != p.Spec.Every:
		return false, fresh
	case at.After(o.Now.Add(every + every/jitterPart)): // the clock was set back
		return false, fresh
	case at.After(o.Now), o.Unfinished:
		return false, *at
	}
	if next := at.Add(every); next.After(o.Now) {
		return true, next
	}
	return true, fresh
}

// jitterPart is the part of the period that the jitter is at most: a tenth.
const jitterPart = 10

// Reconcile makes the backup of the policy of a volume if it is due, and removes the
// backups that it does not keep.
func (r *policies) Reconcile(_ context.Context, volume string) (controller.Result, error) {
	var next time.Time
	var now time.Time
	request := store.NewRequest(r.Store, v1.Controller(), v1.Audit{RequestID: "", Volume: volume})
	err := request.Update(func(tx *store.Tx) error {
		p, err := store.Policies.Get(tx, volume)
		if err != nil {
			return err
		}
		made, err := backupsOfPolicy(tx, volume)
		if err != nil {
			return err
		}
		now = tx.Now()
		jitter := time.Duration(rand.Int64N(int64(p.Spec.Every)/jitterPart + 1))
		var due bool
		due, next = PlanPolicy(p, PolicyObserved{now, jitter, slices.ContainsFunc(made, unfinished)})
		message := p.Status.Message
		if due {
			if message, err = create(tx, request, p); err != nil {
				return err
			}
		}
		return errors.Join(prune(tx, p.Spec.Keep, made), store.Policies.SetStatus(tx, volume, func(s *v1.PolicyStatus) {
			s.Every, s.NextRunAt, s.Message = p.Spec.Every, &next, message
		}))
	})
	if errors.Is(err, store.ErrNotFound) {
		return controller.Result{}, nil
	}
	return controller.Result{RequeueAfter: max(next.Sub(now), time.Second)}, err
}

// create requests a backup, which gets an entry in the audit log. If there are too many,
// it returns a message instead.
func create(tx *store.Tx, request *store.Request, p v1.BackupPolicy) (refusal string, err error) {
	if len(store.Backups.IDs(tx)) >= v1.MaxBackups {
		return "The last run made no backup: too many backups are stored", nil
	}
	id := uuid.NewString()
	request.Audit.Action, request.Audit.Object = "backup.create", id
	return "", store.Backups.Create(tx, id, v1.BackupSpec{VolumeID: p.Meta.ID, Target: p.Spec.Target, Ignore: p.Spec.Ignore,
		Quiesce: p.Spec.Quiesce, Policy: true, RequestedBy: v1.Controller()})
}

func unfinished(b v1.Backup) bool { return !b.Status.State.Finished() }

// backupsOfPolicy returns the backups that the policy of a volume made and that are not
// being deleted, the newest first.
func backupsOfPolicy(tx *store.Tx, volume string) (made []v1.Backup, err error) {
	for _, id := range store.Backups.IDsBy(tx, volume) {
		b, err := store.Backups.Get(tx, id)
		if errors.Is(err, store.ErrDamaged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if b.Spec.Policy && !b.Meta.Deleted {
			made = append(made, b)
		}
	}
	slices.SortFunc(made, func(a, b v1.Backup) int { return b.Meta.CreatedAt.Compare(a.Meta.CreatedAt) })
	return made, nil
}

// prune requests the deletion of all but the newest completed and failed backups. One
// that a restore reads stays until the restore has finished.
func prune(tx *store.Tx, keep int, made []v1.Backup) error {
	kept := map[v1.JobState]int{}
	for _, b := range made {
		if unfinished(b) {
			continue
		}
		if kept[b.Status.State]++; kept[b.Status.State] <= keep {
			continue
		}
		if read, err := isRead(tx, b.Meta.ID); err != nil || read {
			return err
		}
		err := store.Backups.SetSpec(tx, b.Meta.ID, func(s *v1.BackupSpec) error { s.DeletedBy = v1.Controller(); return nil })
		if err := errors.Join(err, store.Backups.Delete(tx, b.Meta.ID)); err != nil {
			return err
		}
	}
	return nil
}

// isRead reports whether a restore of a backup has not finished.
func isRead(tx *store.Tx, backup string) (bool, error) {
	for _, id := range store.Restores.IDsBy(tx, backup) {
		o, err := store.Restores.Get(tx, id)
		if err != nil || !o.Status.State.Finished() {
			return true, err
		}
	}
	return false, nil
}
