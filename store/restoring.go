package store

import (
	"errors"
	"fmt"

	v1 "berth/api/v1"
)

func restoringKey(volume string) string { return "restoring/" + volume }

// Restoring returns the id of the restore of a volume that has not finished, or "". An
// error of the storage fails the transaction, and the volume counts as being restored.
func Restoring(tx *Tx, volume string) (id string) {
	err := tx.read(restoringKey(volume), func(b []byte) error {
		id = string(b)
		return nil
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		tx.fail(fmt.Errorf("%w: restore of volume %s: %w", ErrFailed, volume, err))
		return "unknown"
	}
	return id
}

// BeginRestore stores a new restore. From now on its volume is being restored.
func BeginRestore(tx *Tx, id string, spec v1.RestoreSpec) error {
	if err := Restores.Create(tx, id, spec); err != nil {
		return err
	}
	return setRestoring(tx, spec.VolumeID, tx.set(restoringKey(spec.VolumeID), []byte(id)))
}

// EndRestore ends the reservation of a volume by a restore, if it has it.
func EndRestore(tx *Tx, id, volume string) error {
	if Restoring(tx, volume) != id {
		return nil
	}
	return setRestoring(tx, volume, tx.remove(restoringKey(volume)))
}

// AbandonRestore ends the reservation of a volume by a restore whose record cannot be read,
// if it has one.
func AbandonRestore(tx *Tx, id string) error {
	var volumes []string
	prefix := restoringKey("")
	for e := range tx.scan(prefix, prefix) {
		volumes = append(volumes, e.key[len(prefix):])
	}
	for _, volume := range volumes {
		if err := EndRestore(tx, id, volume); err != nil {
			return err
		}
	}
	return tx.err
}

// setRestoring records that a volume has changed, unless err is one.
func setRestoring(tx *Tx, volume string, err error) error {
	if err == nil {
		tx.recordChange(Change{Kind: Volumes.kind(), ID: volume, What: StatusChanged})
	}
	return err
}
