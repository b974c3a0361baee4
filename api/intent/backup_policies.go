package intent

import (
	"errors"

	v1 "berth/api/v1"
	"berth/store"
)

// FindPolicy returns the backup policy of a volume, or v1.ErrPolicyNotFound.
func FindPolicy(tx *store.Tx, volume string) (v1.BackupPolicy, error) {
	o, err := store.Policies.Get(tx, volume)
	if errors.Is(err, store.ErrNotFound) {
		return o, v1.ErrPolicyNotFound
	}
	return o, err
}

// PutPolicy stores the backup policy of a volume, whose spec CheckPolicy has accepted,
// in place of the one before. Its refusals are v1.ErrVolumeNotFound, v1.ErrTransferring,
// v1.ErrContainerNotFound, and v1.FieldErrors for a quiesce.container that does not use
// the volume.
func PutPolicy(s store.Writer, volume string, spec v1.PolicySpec) error {
	return s.Update(func(tx *store.Tx) error {
		if err := checkChangeable(tx, volume); err != nil {
			return err
		}
		if err := checkQuiesced(tx, spec.Quiesce, volume); err != nil {
			return err
		}
		spec.RequestedBy = tx.Actor()
		_, err := FindPolicy(tx, volume)
		if errors.Is(err, v1.ErrPolicyNotFound) {
			return store.Policies.Create(tx, volume, spec)
		}
		if err != nil {
			return err
		}
		return store.Policies.SetSpec(tx, volume, func(old *v1.PolicySpec) error {
			*old = spec
			return nil
		})
	})
}

// DeletePolicy removes the backup policy of a volume. Its backups stay. Its refusals
// are v1.ErrVolumeNotFound, v1.ErrTransferring and v1.ErrPolicyNotFound.
func DeletePolicy(s store.Writer, volume string) error {
	return s.MustUpdate(func(tx *store.Tx) error {
		if err := checkChangeable(tx, volume); err != nil {
			return err
		}
		if _, err := FindPolicy(tx, volume); err != nil {
			return err
		}
		return store.Policies.Purge(tx, volume)
	})
}
