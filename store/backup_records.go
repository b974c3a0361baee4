package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"

	v1 "berth/api/v1"
)

// BackupTotal is what the backups of a target add up to. Those that are being deleted
// count, because their archives may still be there.
type BackupTotal struct {
	Backups int64
	Bytes   int64 // of their archives
}

func totalKey(target v1.Target) string { return "meta/backups/" + string(target) }
func shareKey(id string) string        { return "backup-size/" + id }
func skippedKey(id string) string      { return "skipped/" + id }

// BackupsIn returns the total of a target. Its cost does not depend on the number of
// backups.
func BackupsIn(tx *Tx, target v1.Target) (BackupTotal, error) {
	var n, bytes uint64
	err := tx.numbers(totalKey(target), &n, &bytes)
	return BackupTotal{int64(n), int64(bytes)}, err
}

// BackupUse returns what counts against the limits of backups before a new one.
func BackupUse(tx *Tx, volume string, target v1.Target) (u v1.BackupUse, err error) {
	for _, t := range v1.Targets() {
		total, err := BackupsIn(tx, t)
		if err != nil {
			return u, err
		}
		if u.Host += total.Backups; t == target {
			u.Bytes = total.Bytes
		}
	}
	u.Volume = len(Backups.IDsBy(tx, volume))
	return u, nil
}

// BackupBytes returns the bytes of a backup in the total of its target: 0 before it is
// completed.
func BackupBytes(tx *Tx, id string) (int64, error) {
	s, err := readShare(tx, id)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return s.bytes, err
}

// SetSkipped stores the skipped entries of a backup whose BackupStatus.Skipped has the first
// ones only.
func SetSkipped(tx *Tx, id string, list []v1.Skipped) error {
	value, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return tx.set(skippedKey(id), value)
}

// SkippedOf returns the skipped entries of a backup.
func SkippedOf(tx *Tx, b v1.Backup) (list []v1.Skipped, err error) {
	err = tx.read(skippedKey(b.Meta.ID), func(value []byte) error { return json.Unmarshal(value, &list) })
	if errors.Is(err, ErrNotFound) {
		return b.Status.Skipped, nil
	}
	return list, Backups.wrap(b.Meta.ID, err)
}

// share is the share of a backup in the total of its target. It has a key of its own, so
// that a backup whose records cannot be decoded leaves the total as well.
type share struct {
	target v1.Target
	bytes  int64
}

func readShare(tx *Tx, id string) (s share, err error) {
	err = tx.read(shareKey(id), func(b []byte) error {
		if len(b) < 8 {
			return ErrDamaged
		}
		s = share{v1.Target(b[8:]), int64(binary.BigEndian.Uint64(b))}
		return nil
	})
	return s, err
}

// addShare adds a backup that is created to the total of its target.
func addShare(tx *Tx, id string, spec any) error {
	if s, is := spec.(v1.BackupSpec); is {
		return setShare(tx, id, &share{target: s.Target})
	}
	return nil
}

// updateShare brings the share of a backup up to date with a status.
func updateShare(tx *Tx, id string, status any) error {
	s, is := status.(v1.BackupStatus)
	if !is {
		return nil
	}
	old, err := readShare(tx, id)
	if errors.Is(err, ErrNotFound) || err == nil && old.bytes == s.Size {
		return nil
	}
	if err != nil {
		return err
	}
	return setShare(tx, id, &share{old.target, s.Size})
}

// setShare replaces the share of a backup; nil removes it.
func setShare(tx *Tx, id string, next *share) error {
	old, err := readShare(tx, id)
	switch {
	case err == nil:
		err = addToTotal(tx, old.target, -1, -old.bytes)
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrDamaged):
		err = nil
	}
	if err != nil {
		return err
	}
	if next == nil {
		return tx.remove(shareKey(id))
	}
	value := append(binary.BigEndian.AppendUint64(nil, uint64(next.bytes)), next.target...)
	return errors.Join(tx.set(shareKey(id), value), addToTotal(tx, next.target, 1, next.bytes))
}

func addToTotal(tx *Tx, target v1.Target, n, bytes int64) error {
	total, err := BackupsIn(tx, target)
	if err != nil {
		return err
	}
	return tx.setNumbers(totalKey(target), uint64(max(0, total.Backups+n)), uint64(max(0, total.Bytes+bytes)))
}

// purgeBackup removes what has keys of its own of a backup.
func purgeBackup(tx *Tx, kind, id string) error {
	if kind != Backups.kind() {
		return nil
	}
	return errors.Join(setShare(tx, id, nil), tx.remove(skippedKey(id)))
}

// skippedChunk is the number of backups that one update of splitSkipped changes. The
// largest record of one had 300 KiB, and an update takes 1 MiB.
const skippedChunk = 3

// splitSkipped gives the skipped entries of every backup a key of their own, and counts the
// backups and their bytes, for a store of version 3.
func splitSkipped(s *Store) error {
	var ids []string
	err := s.View(func(tx *Tx) error {
		ids = Backups.IDs(tx)
		return tx.err
	})
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(ids, skippedChunk) {
		if err := inChunks(s, slices.Values(chunk), splitBackup); err != nil {
			return err
		}
	}
	return nil
}

func splitBackup(tx *Tx, id string) error {
	spec, _, err := recordToChange[v1.BackupSpec](tx, Backups.specKey(id))
	if err != nil {
		return leaveDamaged(tx, id, err)
	}
	if err := setShare(tx, id, &share{target: spec.Value.Target}); err != nil {
		return err
	}
	var all []v1.Skipped
	err = Backups.SetStatus(tx, id, func(st *v1.BackupStatus) {
		all = st.Skipped
		st.Skipped = v1.FirstSkipped(all, v1.ListedSkipped, v1.ListedSkippedBytes)
	})
	if err != nil {
		return leaveDamaged(tx, id, err)
	}
	status, _, err := recordToChange[v1.BackupStatus](tx, Backups.statusKey(id))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		err = updateShare(tx, id, status.Value)
	}
	if err == nil && len(all) > len(status.Value.Skipped) {
		err = SetSkipped(tx, id, all)
	}
	return err
}

// leaveDamaged logs that a backup cannot be migrated, or returns err if it is another one.
func leaveDamaged(tx *Tx, id string, err error) error {
	if errors.Is(err, ErrDamaged) {
		tx.store.log.Error("cannot read a backup; it is not migrated", "backup", id, "err", err)
		return nil
	}
	return err
}
