package server

import (
	"time"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

// backups holds the handlers for backups, their policies and restores.
type backups struct {
	store    *store.Store
	settings Settings
	archives Archives // nil: unavailable
	sessions sessions
}

// hasS3 reports whether backups can be stored in S3.
func (s backups) hasS3() bool { return s.archives != nil && s.archives.Has(v1.TargetS3) }

// findBackup returns the backup that the path of a request names. It is
// v1.ErrBackupNotFound if the caller may access no container that uses its volume.
func (c *call) findBackup(tx *store.Tx) (v1.Backup, error) {
	b, err := intent.FindBackup(tx, c.param("backup"))
	if err == nil && !c.caller.CanAccessAny(intent.UsersOf(tx, b.Spec.VolumeID)) {
		err = v1.ErrBackupNotFound
	}
	if err == nil {
		c.describe(func(a *v1.Audit) { a.Object, a.Volume = b.Meta.ID, b.Spec.VolumeID })
	}
	return b, err
}

type createdBackupBody struct {
	Message  string      `json:"message"`
	BackupID string      `json:"backup_id"`
	State    v1.JobState `json:"state"`
}

func (s backups) check(c *call, r *v1.BackupRequest) error {
	intent.CheckBackup(&c.faults, r, s.hasS3())
	return c.mayQuiesce(r.Quiesce)
}

func (s backups) create(c *call, r v1.BackupRequest) (createdBackupBody, error) {
	volume, err := c.volumeToQuiesce(s.store, r.Quiesce)
	if err != nil {
		return createdBackupBody{}, err
	}
	id := intent.NewID()
	c.describe(func(a *v1.Audit) { a.Object = id })
	answer := createdBackupBody{"Backup started", id, v1.JobPending}
	spec := v1.BackupSpec{VolumeID: volume, BackupRequest: r}
	return answer, intent.CreateBackup(c.promise(s.store, func(string) any { return answer }), id, spec, s.settings.Current().Backups)
}

// mayQuiesce returns auth.ErrScope if the caller must not send commands to consoles.
func (c *call) mayQuiesce(q *v1.Quiesce) error {
	if q != nil && !c.caller.HasScope(v1.ScopeConsole) {
		return auth.ErrScope
	}
	return nil
}

// volumeToQuiesce returns the volume in the path of a request for a backup or a policy. It returns
// v1.ErrContainerNotFound if the caller may not access the container to quiesce.
func (c *call) volumeToQuiesce(db *store.Store, q *v1.Quiesce) (volume string, err error) {
	volume, err = c.volumeID(db)
	if err == nil && q != nil && !c.caller.CanAccess(q.Container) {
		err = v1.ErrContainerNotFound
	}
	return volume, err
}

func (s backups) get(c *call) (view v1.BackupView, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		b, err := c.findBackup(tx)
		if err != nil {
			return err
		}
		if b.Status.Skipped, err = store.SkippedOf(tx, b); err != nil {
			return err
		}
		restores, err := intent.RestoresOf(tx, b.Meta.ID)
		view = v1.ViewOfBackup(b, restores)
		return err
	})
	return view, err
}

func (s backups) delete(c *call) (messageBody, error) {
	var id string
	err := s.store.View(func(tx *store.Tx) error {
		b, err := c.findBackup(tx)
		id = b.Meta.ID
		return err
	})
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Backup deletion started"}, intent.DeleteBackup(c.writer(s.store), id)
}

type startedRestoreBody struct {
	Message   string `json:"message"`
	RestoreID string `json:"restore_id"`
}

func (s backups) checkRestore(c *call, r *v1.RestoreRequest) error {
	intent.CheckRestoreMode(&c.faults, &r.Mode)
	return nil
}

func (s backups) restore(c *call, r v1.RestoreRequest) (startedRestoreBody, error) {
	spec := v1.RestoreSpec{RestoreRequest: r}
	if err := s.store.View(func(tx *store.Tx) error { return c.resolveRestore(tx, &spec) }); err != nil {
		return startedRestoreBody{}, err
	}
	id := intent.NewID()
	answer := startedRestoreBody{"Restore started", id}
	return answer, intent.RestoreBackup(c.promise(s.store, func(string) any { return answer }), id, spec)
}

// resolveRestore sets the backup and the volume of a restore. The caller may access
// both.
func (c *call) resolveRestore(tx *store.Tx, spec *v1.RestoreSpec) error {
	b, err := c.findBackup(tx)
	if err != nil {
		return err
	}
	spec.BackupID = b.Meta.ID
	if spec.VolumeID == "" {
		spec.VolumeID = b.Spec.VolumeID
	}
	v, err := intent.FindVolume(tx, spec.VolumeID)
	if err != nil {
		return err
	}
	spec.VolumeID = v.Meta.ID
	c.describe(func(a *v1.Audit) { a.Volume = v.Meta.ID })
	return nil
}

func (s backups) checkPolicy(c *call, r *v1.PolicyView) error {
	if least := limit.Jobs().Every; c.caller.Restricted() && time.Duration(r.Every) < least {
		c.faults.Add("every", "must be at least %s with a token that is limited to containers", least)
	}
	intent.CheckPolicy(&c.faults, &r.PolicySpec, s.settings.Current().Backups, s.hasS3())
	return c.mayQuiesce(r.Quiesce)
}

// putPolicy replaces the backup policy of a volume as a whole.
func (s backups) putPolicy(c *call, r v1.PolicyView) (v1.PolicyView, error) {
	volume, err := c.volumeToQuiesce(s.store, r.Quiesce)
	if err != nil {
		return r, err
	}
	if err := intent.PutPolicy(c.writer(s.store), volume, r.PolicySpec); err != nil {
		return r, err
	}
	return s.policy(c)
}

func (s backups) policy(c *call) (view v1.PolicyView, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		v, _, err := c.findVolume(tx)
		if err != nil {
			return err
		}
		p, err := intent.FindPolicy(tx, v.Meta.ID)
		view = v1.PolicyView{VolumeID: p.Meta.ID, PolicySpec: p.Spec, NextRunAt: p.Status.NextRunAt, Message: p.Status.Message}
		return err
	})
	return view, err
}

func (s backups) deletePolicy(c *call) (messageBody, error) {
	volume, err := c.volumeID(s.store)
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Backup policy deleted successfully"}, intent.DeletePolicy(c.writer(s.store), volume)
}
