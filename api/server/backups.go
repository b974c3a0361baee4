package server

import (
	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// backups holds the handlers for backups and restores.
type backups struct {
	store    *store.Store
	settings Settings
	decoder  decoder
	archives Archives // nil: unavailable
	sessions sessions
}

// hasS3 reports whether backups can be stored in S3.
func hasS3(a Archives) bool { return a != nil && a.Has(v1.TargetS3) }

// findBackup returns the backup that the path of a request names. It is
// v1.ErrBackupNotFound if the caller may access no container that uses its volume.
func findBackup(c *fiber.Ctx, tx *store.Tx) (v1.Backup, error) {
	b, err := intent.FindBackup(tx, edge.Param(c, "backup"))
	if err == nil && !callerOf(c).CanAccessAny(intent.UsersOf(tx, b.Spec.VolumeID)) {
		err = v1.ErrBackupNotFound
	}
	if err == nil {
		describe(c, func(a *v1.Audit) { a.Object, a.Volume = b.Meta.ID, b.Spec.VolumeID })
	}
	return b, err
}

type createdBackupBody struct {
	Message  string      `json:"message"`
	BackupID string      `json:"backup_id"`
	State    v1.JobState `json:"state"`
}

func (s backups) create(c *fiber.Ctx) error {
	var body struct {
		Name    string       `json:"name"`
		Target  v1.Target    `json:"target"`
		Ignore  []string     `json:"ignore"`
		Quiesce *quiesceBody `json:"quiesce"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	spec := v1.BackupSpec{Name: body.Name, Target: body.Target, Ignore: body.Ignore, Quiesce: body.Quiesce.spec()}
	volume, err := admit(c, s.store, spec.Quiesce, func() error {
		intent.CheckBackup(&f, &spec, hasS3(s.archives))
		return f.Err()
	})
	if err != nil {
		return err
	}
	id := intent.NewID()
	spec.VolumeID = volume
	describe(c, func(a *v1.Audit) { a.Object = id })
	answer := createdBackupBody{"Backup started", id, v1.JobPending}
	if err := intent.CreateBackup(promise(c, s.store, fiber.StatusOK, func(string) any { return answer }), id, spec, s.settings.Current().Backups); err != nil {
		return err
	}
	return edge.OK(c, answer)
}

// admit returns the volume in the path of a request for a backup or a policy. It checks, in
// this order, the caller's scope, the body by means of valid, the volume, and the container
// to quiesce.
func admit(c *fiber.Ctx, db *store.Store, q *v1.Quiesce, valid func() error) (volume string, err error) {
	if err := mayQuiesce(c, q); err != nil {
		return "", err
	}
	if err := valid(); err != nil {
		return "", err
	}
	if volume, err = volumeID(c, db); err != nil {
		return "", err
	}
	return volume, seesQuiesced(c, q)
}

// mayQuiesce returns auth.ErrScope if the caller must not send commands to consoles.
func mayQuiesce(c *fiber.Ctx, q *v1.Quiesce) error {
	if q != nil && !callerOf(c).HasScope(v1.ScopeConsole) {
		return auth.ErrScope
	}
	return nil
}

// seesQuiesced returns v1.ErrContainerNotFound if the caller may not access the
// container to quiesce.
func seesQuiesced(c *fiber.Ctx, q *v1.Quiesce) error {
	if q != nil && !callerOf(c).CanAccess(q.Container) {
		return v1.ErrContainerNotFound
	}
	return nil
}

func (s backups) get(c *fiber.Ctx) error {
	var view backupView
	err := s.store.View(func(tx *store.Tx) error {
		b, err := findBackup(c, tx)
		if err != nil {
			return err
		}
		if b.Status.Skipped, err = store.SkippedOf(tx, b); err != nil {
			return err
		}
		restores, err := intent.RestoresOf(tx, b.Meta.ID)
		view = viewOfBackup(b, restores)
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, view)
}

func (s backups) delete(c *fiber.Ctx) error {
	var id string
	err := s.store.View(func(tx *store.Tx) error {
		b, err := findBackup(c, tx)
		id = b.Meta.ID
		return err
	})
	if err != nil {
		return err
	}
	if err := intent.DeleteBackup(requestOf(c, s.store), id); err != nil {
		return err
	}
	return edge.OK(c, messageBody{"Backup deletion started"})
}
