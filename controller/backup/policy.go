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

// policyPlan is what is to be done for a policy.
type policyPlan struct {
	policy v1.BackupPolicy
	due    bool
	now    time.Time
	next   time.Time
	prune  []string // backups to delete
}

// Reconcile makes the backup of the policy of a volume if it is due, and removes the
// backups that it does not keep. It reads them in a view: the store has a single writer.
func (r *policies) Reconcile(_ context.Context, volume string) (controller.Result, error) {
	var x policyPlan
	err := r.Store.View(func(tx *store.Tx) (err error) {
		x, err = planOf(tx, volume)
		return err
	})
	if err == nil && x.changes() {
		err = r.carryOut(x)
	}
	if errors.Is(err, store.ErrNotFound) {
		return controller.Result{}, nil
	}
	return controller.Result{RequeueAfter: max(x.next.Sub(x.now), time.Second)}, err
}

func planOf(tx *store.Tx, volume string) (x policyPlan, err error) {
	if x.policy, err = store.Policies.Get(tx, volume); err != nil {
		return x, err
	}
	made, err := backupsOfPolicy(tx, volume)
	if err != nil {
		return x, err
	}
	x.now = tx.Now()
	jitter := time.Duration(rand.Int64N(int64(x.policy.Spec.Every)/jitterPart + 1))
	x.due, x.next = PlanPolicy(x.policy, PolicyObserved{x.now, jitter, slices.ContainsFunc(made, unfinished)})
	x.prune, err = superfluous(tx, x.policy.Spec.Keep, made)
	return x, err
}

// changes reports whether the plan changes the store.
func (x policyPlan) changes() bool {
	st := x.policy.Status
	return x.due || len(x.prune) > 0 || st.Every != x.policy.Spec.Every || st.NextRunAt == nil || !st.NextRunAt.Equal(x.next)
}

var errPolicyChanged = errors.New("the backup policy was changed meanwhile; berth retries")

// carryOut stores what a plan changes, in one transaction. The policy must be as it was
// planned for.
func (r *policies) carryOut(x policyPlan) error {
	volume, message := x.policy.Meta.ID, x.policy.Status.Message
	request := store.NewRequest(r.Store, v1.Controller(), v1.Audit{RequestID: "", Volume: volume})
	err := request.Update(func(tx *store.Tx) error {
		p, err := store.Policies.Get(tx, volume)
		if err == nil && p.Meta.Revision != x.policy.Meta.Revision {
			err = errPolicyChanged
		}
		if err == nil && x.due {
			message, err = create(tx, request, p, r.Limits())
		}
		if err != nil {
			return err
		}
		return errors.Join(prune(tx, x.prune), store.Policies.SetStatus(tx, volume, func(s *v1.PolicyStatus) {
			s.Every, s.NextRunAt, s.Message = p.Spec.Every, &x.next, message
		}))
	})
	if err == nil && message != "" && message != x.policy.Status.Message {
		r.Log.Warn("a backup policy made no backup", "volume", volume, "reason", message)
	}
	return err
}

// create requests a backup, which gets an entry in the audit log. If the limits refuse it,
// it returns the reason instead.
func create(tx *store.Tx, request *store.Request, p v1.BackupPolicy, limits v1.BackupsConfig) (refusal string, err error) {
	if err := limits.Admit(p.Spec.Target, store.BackupUse(tx, p.Meta.ID, p.Spec.Target, int64(limits.MaxVolumeSize))); err != nil {
		return "The last run made no backup: " + err.Error(), nil
	}
	id := uuid.NewString()
	request.Audit.Action, request.Audit.Object = "backup.create", id
	return "", store.Backups.Create(tx, id, v1.BackupSpec{VolumeID: p.Meta.ID, Policy: true, RequestedBy: v1.Controller(),
		BackupRequest: v1.BackupRequest{Target: p.Spec.Target, Ignore: p.Spec.Ignore, Quiesce: p.Spec.Quiesce}})
}

func unfinished(b v1.Backup) bool { return !b.Status.State.Finished() }

// backupsOfPolicy returns the backups that the policy of a volume made and that are not
// being deleted, the newest first.
func backupsOfPolicy(tx *store.Tx, volume string) (made []v1.Backup, err error) {
	made = store.Backups.ListBy(tx, volume)
	made = slices.DeleteFunc(made, func(b v1.Backup) bool { return !b.Spec.Policy || b.Meta.Deleted })
	slices.SortFunc(made, func(a, b v1.Backup) int { return b.Meta.CreatedAt.Compare(a.Meta.CreatedAt) })
	return made, nil
}

// superfluous returns all but the newest completed and failed backups. One that a restore
// reads stays until the restore has finished.
func superfluous(tx *store.Tx, keep int, made []v1.Backup) (ids []string, err error) {
	kept := map[v1.JobState]int{}
	for _, b := range made {
		if unfinished(b) {
			continue
		}
		if kept[b.Status.State]++; kept[b.Status.State] <= keep {
			continue
		}
		read, err := isRead(tx, b.Meta.ID)
		if err != nil {
			return nil, err
		}
		if !read {
			ids = append(ids, b.Meta.ID)
		}
	}
	return ids, nil
}

// prune requests the deletion of backups, except for those that a restore reads by now.
func prune(tx *store.Tx, ids []string) error {
	for _, id := range ids {
		read, err := isRead(tx, id)
		if err != nil {
			return err
		}
		if read {
			continue
		}
		err = store.Backups.SetSpec(tx, id, func(s *v1.BackupSpec) error { s.DeletedBy = v1.Controller(); return nil })
		if errors.Is(err, store.ErrNotFound) {
			continue // it was purged meanwhile
		}
		if err := errors.Join(err, store.Backups.Delete(tx, id)); err != nil {
			return err
		}
	}
	return nil
}

// isRead reports whether a restore of a backup has not finished.
func isRead(tx *store.Tx, backup string) (bool, error) {
	return slices.ContainsFunc(store.Restores.ListBy(tx, backup), isUnfinished), nil
}

// isUnfinished reports whether a restore needs another step.
func isUnfinished(r v1.Restore) bool { return !r.Status.State.Finished() }
