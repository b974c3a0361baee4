package server

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

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
	if err := mayQuiesce(c, spec.Quiesce); err != nil {
		return err
	}
	intent.CheckBackup(&f, &spec, hasS3(s.archives))
	if err := f.Err(); err != nil {
		return err
	}
	volume, err := volumeID(c, s.store)
	if err != nil {
		return err
	}
	if err := seesQuiesced(c, spec.Quiesce); err != nil {
		return err
	}
	id := intent.NewID()
	spec.VolumeID = volume
	describe(c, func(a *v1.Audit) { a.Object = id })
	answer := createdBackupBody{"Backup started", id, v1.JobPending}
	if err := intent.CreateBackup(promise(c, s.store, fiber.StatusOK, func(string) any { return answer }), id, spec); err != nil {
		return err
	}
	return edge.OK(c, answer)
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
		restores, err := intent.RestoresOf(tx, b.Meta.ID)
		view = viewOfBackup(b, restores)
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, view)
}

// list answers with the backups of ?volume=, or of all volumes. That volume may be
// deleted: then only its whole id is known.
func (s backups) list(c *fiber.Ctx) error {
	return s.answer(c, func(tx *store.Tx) (string, error) {
		volume := c.Query("volume")
		if volume == "" {
			return "", nil
		}
		v, err := intent.FindVolume(tx, volume)
		switch sees := callerOf(c).CanAccessAny(intent.UsersOf(tx, v.Meta.ID)); {
		case err == nil && sees:
			return v.Meta.ID, nil
		case err == nil:
			return "", v1.ErrVolumeNotFound
		case errors.Is(err, v1.ErrVolumeNotFound) && !callerOf(c).Restricted() && len(store.Backups.IDsBy(tx, volume)) > 0:
			return volume, nil
		}
		return "", err
	})
}

// listOfVolume answers with the backups of the volume that the path names.
func (s backups) listOfVolume(c *fiber.Ctx) error {
	return s.answer(c, func(tx *store.Tx) (string, error) {
		v, _, err := findVolume(c, tx)
		return v.Meta.ID, err
	})
}

// answer answers with a page of the backups of a volume, or of all volumes if it is
// empty, the newest first.
func (s backups) answer(c *fiber.Ctx, volumeOf func(*store.Tx) (string, error)) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	var body backupsBody
	err = s.store.View(func(tx *store.Tx) error {
		volume, err := volumeOf(tx)
		if err != nil {
			return err
		}
		list, err := backupsOf(tx, volume)
		if err != nil {
			return err
		}
		slices.SortFunc(list, intent.NewestFirst[v1.BackupSpec, v1.BackupStatus])
		restores, err := restoresByBackup(tx)
		body.Backups, body.Continue = take(page, shownBackups(tx, callerOf(c), page, list, restores))
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}

// backupsOf returns the backups of a volume, or all if it is empty.
func backupsOf(tx *store.Tx, volume string) (list []v1.Backup, err error) {
	if volume == "" {
		return store.Backups.List(tx)
	}
	for _, id := range store.Backups.IDsBy(tx, volume) {
		b, err := store.Backups.Get(tx, id)
		if errors.Is(err, store.ErrDamaged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// restoresByBackup returns all restores by the id of their backup, the newest first.
func restoresByBackup(tx *store.Tx) (map[string][]v1.Restore, error) {
	all, err := store.Restores.List(tx)
	slices.SortFunc(all, intent.NewestFirst[v1.RestoreSpec, v1.RestoreStatus])
	by := map[string][]v1.Restore{}
	for _, r := range all {
		by[r.Spec.BackupID] = append(by[r.Spec.BackupID], r)
	}
	return by, err
}

// shownBackups yields the backups of a page and behind it that a caller may see, with
// the text that identifies each in the order of the list.
func shownBackups(tx *store.Tx, caller auth.Principal, page listPage, list []v1.Backup, restores map[string][]v1.Restore) iter.Seq2[string, backupView] {
	sees := map[string]bool{}
	return func(yield func(string, backupView) bool) {
		for _, b := range list {
			at := fmt.Sprintf("%019d/%s", math.MaxInt64-b.Meta.CreatedAt.UnixNano(), b.Meta.ID)
			if at <= page.after {
				continue
			}
			may, known := sees[b.Spec.VolumeID]
			if !known {
				may = !caller.Restricted() || caller.CanAccessAny(intent.UsersOf(tx, b.Spec.VolumeID))
				sees[b.Spec.VolumeID] = may
			}
			if !may {
				continue
			}
			v := viewOfBackup(b, restores[b.Meta.ID])
			v.Skipped = v.Skipped[:min(len(v.Skipped), listedSkipped)]
			if !yield(at, v) {
				return
			}
		}
	}
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
