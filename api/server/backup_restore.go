package server

import (
	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

type startedRestoreBody struct {
	Message   string `json:"message"`
	RestoreID string `json:"restore_id"`
}

func (s backups) restore(c *fiber.Ctx) error {
	var body struct {
		VolumeID string `json:"volume_id"`
		Mode     string `json:"mode"`
		Stop     bool   `json:"stop"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	spec := v1.RestoreSpec{VolumeID: body.VolumeID, Mode: body.Mode, Stop: body.Stop}
	intent.CheckRestoreMode(&f, &spec.Mode)
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.store.View(func(tx *store.Tx) error { return resolveRestore(c, tx, &spec) }); err != nil {
		return err
	}
	id := intent.NewID()
	answer := startedRestoreBody{"Restore started", id}
	if err := intent.RestoreBackup(promise(c, s.store, fiber.StatusOK, func(string) any { return answer }), id, spec); err != nil {
		return err
	}
	return edge.OK(c, answer)
}

// resolveRestore sets the backup and the volume of a restore. The caller may access
// both.
func resolveRestore(c *fiber.Ctx, tx *store.Tx, spec *v1.RestoreSpec) error {
	b, err := findBackup(c, tx)
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
	describe(c, func(a *v1.Audit) { a.Volume = v.Meta.ID })
	return nil
}
