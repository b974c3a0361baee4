package backup

import (
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// change changes the status of a backup in an update.
type change func(tx *store.Tx, s *v1.BackupStatus, now time.Time) error

// record stores a changed status of a backup. A change of the state emits an event.
func record(db *store.Store, b v1.Backup, fn change) error {
	return db.MustUpdate(func(tx *store.Tx) (err error) {
		setErr := store.Backups.SetStatus(tx, b.Meta.ID, func(s *v1.BackupStatus) {
			before := s.State
			if err = fn(tx, s, tx.Now()); err != nil || s.State == before {
				return
			}
			s.Seq = store.Emit(tx, v1.Event{Event: v1.EventBackup, Data: string(s.State), Backup: b.Meta.ID,
				Volume: b.Spec.VolumeID, Actor: actorOf(b.Spec, s.State)}).Seq
		})
		if err != nil {
			return err
		}
		return setErr
	})
}

// actorOf returns who caused a state of a backup.
func actorOf(s v1.BackupSpec, state v1.JobState) v1.Actor {
	if state == v1.JobDeleting {
		return s.DeletedBy
	}
	return s.RequestedBy
}
