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

// PlanPolicy returns whether a backup is due, and the time of the next one; zero: there is none. A run that
// was missed is made up once. While a backup of the policy has not finished, the next
// one waits. It reads nothing and changes nothing.
func PlanPolicy(p v1.BackupPolicy, o PolicyObserved) (due bool, next time.Time) {
	if p.Spec.Cron != "" {
		return planCron(p, o)
	}
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

// planCron is PlanPolicy of a policy with cron.
func planCron(p v1.BackupPolicy, o PolicyObserved) (due bool, next time.Time) {
	at := p.Status.NextRunAt
	follows := p.Status.Follows(p.Spec.Cron, p.Spec.Timezone, o.Now)
	if at != nil && follows && (at.After(o.Now) || o.Unfinished) {
		return false, *at
	}
	return at != nil && follows, v1.NextCron(p.Spec.Cron, p.Spec.Timezone, o.Now)
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
	x, err := planOf(r.Store.Read(), volume)
	if err == nil && x.changes() {
		err = r.carryOut(x)
	}
	if errors.Is(err, store.ErrNotFound) || err == nil && x.next.IsZero() {
		return controller.Result{}, nil
	}
	return controller.Result{RequeueAfter: max(x.next.Sub(x.now), time.Second)}, err
}

func planOf(tx *store.Tx, volume string) (x policyPlan, err error) {
	if x.policy, err = store.Policies.Get(tx, volume); err != nil {
		return x, err
	}
	made := backupsOfPolicy(tx, volume)
	x.now = tx.Now()
	jitter := time.Duration(rand.Int64N(int64(x.policy.Spec.Every)/jitterPart + 1))
	x.due, x.next = PlanPolicy(x.policy, PolicyObserved{x.now, jitter, slices.ContainsFunc(made, unfinished)})
	x.prune = superfluous(tx, x.policy.Spec.Keep, made)
	return x, nil
}

// changes reports whether the plan changes the store.
func (x policyPlan) changes() bool {
	return x.due || len(x.prune) > 0 || !x.followed()
}

// followed reports whether the status is of the spec, and has the time of the next backup.
func (x policyPlan) followed() bool {
	st, spec := x.policy.Status, x.policy.Spec
	if st.Every != spec.Every || !st.Follows(spec.Cron, spec.Timezone, x.now) {
		return false
	}
	return st.NextRunAt == nil && x.next.IsZero() || st.NextRunAt != nil && st.NextRunAt.Equal(x.next)
}

// follow records that the times up to now are over, and when the next backup is due.
func (x policyPlan) follow(s *v1.PolicyStatus) {
	spec := x.policy.Spec
	period := x.next.Sub(x.now)
	if x.due {
		period = max(period, s.NextRunAt.Sub(s.Handled))
	}
	s.Every, s.CronState = spec.Every, v1.CronState{Cron: spec.Cron, Timezone: spec.Timezone, Handled: x.now}
	s.NextRunAt, s.Period = nil, 0
	if !x.next.IsZero() {
		s.NextRunAt = &x.next
	}
	if spec.Cron != "" {
		s.Period = v1.Duration(max(0, period))
	}
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
			message, err = r.create(tx, request, p)
		}
		if err != nil {
			return err
		}
		return errors.Join(prune(tx, x.prune), store.Policies.SetStatus(tx, volume, func(s *v1.PolicyStatus) {
			s.Message = message
			if x.due || !x.followed() {
				x.follow(s)
			}
		}))
	})
	if err == nil && message != "" && message != x.policy.Status.Message {
		r.Log.Warn("a backup policy made no backup", "volume", volume, "reason", message)
	}
	return err
}

// create requests a backup, which gets an entry in the audit log. If the policy has ended with its
// maker, or if the limits refuse the backup, it returns the reason instead.
func (r *policies) create(tx *store.Tx, request *store.Request, p v1.BackupPolicy) (refusal string, err error) {
	ended, err := r.ended(tx, p.Spec.Maker, p.Spec.Quiesce, p.Meta.ID)
	if err != nil {
		return "", err
	}
	if ended != "" {
		return "The policy has ended: " + ended + "; set it again", nil
	}
	limits := r.Limits()
	if err := limits.Admit(p.Spec.Target, store.BackupUse(tx, p.Meta.ID, p.Spec.Target, int64(limits.MaxVolumeSize))); err != nil {
		return "The last run made no backup: " + err.Error(), nil
	}
	id := uuid.NewString()
	request.Audit.Action, request.Audit.Object = "backup.create", id
	return "", store.Backups.Create(tx, id, v1.BackupSpec{VolumeID: p.Meta.ID, Policy: true, Maker: p.Spec.Maker, RequestedBy: v1.Controller(),
		BackupRequest: v1.BackupRequest{Target: p.Spec.Target, Ignore: p.Spec.Ignore, Quiesce: p.Spec.Quiesce}})
}

func unfinished(b v1.Backup) bool { return !b.Status.State.Finished() }

// backupsOfPolicy returns the backups that the policy of a volume made and that are not
// being deleted, the newest first.
func backupsOfPolicy(tx *store.Tx, volume string) []v1.Backup {
	return newestOf(tx, volume, func(s v1.BackupSpec) bool { return s.Policy })
}

// newestOf returns the backups of a volume whose spec is one, and that are not being deleted, the newest first.
func newestOf(tx *store.Tx, volume string, is func(v1.BackupSpec) bool) []v1.Backup {
	made := store.Backups.ListBy(tx, volume)
	made = slices.DeleteFunc(made, func(b v1.Backup) bool { return !is(b.Spec) || b.Meta.Deleted })
	slices.SortFunc(made, v1.NewestFirst[v1.BackupSpec, v1.BackupStatus])
	return made
}

// PruneSchedule requests the deletion of the backups that a schedule has made of a volume, except for the newest
// completed and failed ones, and those that are used.
func PruneSchedule(tx *store.Tx, volume, schedule string, keep int) error {
	return prune(tx, superfluous(tx, keep, newestOf(tx, volume, func(s v1.BackupSpec) bool { return s.Schedule == schedule })))
}

// superfluous returns all but the newest completed and failed backups. One that is used
// stays until it is not.
func superfluous(tx *store.Tx, keep int, made []v1.Backup) (ids []string) {
	kept := map[v1.JobState]int{}
	for _, b := range made {
		if unfinished(b) {
			continue
		}
		if kept[b.Status.State]++; kept[b.Status.State] > keep && !isUsed(tx, b.Meta.ID) {
			ids = append(ids, b.Meta.ID)
		}
	}
	return ids
}

// prune requests the deletion of backups, except for those that are used by now.
func prune(tx *store.Tx, ids []string) error {
	for _, id := range ids {
		if isUsed(tx, id) {
			continue
		}
		err := store.Backups.SetSpec(tx, id, func(s *v1.BackupSpec) error { s.DeletedBy = tx.Actor(); return nil })
		if errors.Is(err, store.ErrNotFound) {
			continue // it was purged meanwhile
		}
		if err := errors.Join(err, store.Backups.Delete(tx, id)); err != nil {
			return err
		}
	}
	return nil
}

// isUsed reports whether a restore of a backup has not finished, or a transfer may have given it to another node.
func isUsed(tx *store.Tx, backup string) bool {
	b, err := store.Backups.Get(tx, backup)
	return err == nil && v1.IsDeparture(store.Restoring(tx, b.Spec.VolumeID)) ||
		slices.ContainsFunc(store.Restores.ListBy(tx, backup), isUnfinished)
}

// isUnfinished reports whether a restore needs another step.
func isUnfinished(r v1.Restore) bool { return !r.Status.State.Finished() }
