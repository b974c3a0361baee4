package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"

	v1 "berth/api/v1"
	"berth/store/kv"
)

const (
	claimPrefix     = "claim/"
	cursorPrefix    = "cursor/"
	restoringPrefix = "restoring/"
)

// claimsOf is the prefix of the claims of one pool.
func claimsOf(pool string) string { return claimPrefix + pool + "/" }

// claimKey sorts the claims of a pool by their ports.
func claimKey(pool string, port int) entry[v1.Claim] {
	return entry[v1.Claim](fmt.Sprintf("%s%05d", claimsOf(pool), port))
}

// GetClaim returns the claim of one port of a pool: the zero Claim if no container
// holds the port.
func GetClaim(tx *Tx, pool string, port int) (v1.Claim, error) { return claimKey(pool, port).get(tx) }

// SetClaim stores the claim of one port of a pool. The zero Claim releases it.
func SetClaim(tx *Tx, pool string, port int, c v1.Claim) error {
	tx.recordChange(Change{Kind: "claim", ID: pool, What: SpecChanged})
	if c == (v1.Claim{}) {
		return claimKey(pool, port).remove(tx)
	}
	return claimKey(pool, port).set(tx, c)
}

// Claims yields the claims of a pool from a port on, lowest port first. A claim that cannot
// be decoded still holds its port: no other container may get it.
func Claims(tx *Tx, pool string, from int) iter.Seq2[int, v1.Claim] {
	return func(yield func(int, v1.Claim) bool) {
		prefix := claimsOf(pool)
		for key, value := range tx.from(prefix, string(claimKey(pool, from))) {
			port, err := strconv.Atoi(key[len(prefix):])
			claim, _ := value.(v1.Claim)
			if err == nil && !yield(port, claim) {
				return
			}
		}
	}
}

// Claimed returns the claimed ports of a pool.
func Claimed(tx *Tx, pool string) (ports v1.PortSet) {
	for port := range Claims(tx, pool, 0) {
		ports.Add(port)
	}
	return ports
}

// Cursor returns the seq that SetCursor stored under name, or 0. One that cannot be decoded
// is 0 too: its reader begins with the oldest transition.
func Cursor(tx *Tx, name string) uint64 {
	seq, _ := entry[uint64](cursorPrefix + name).get(tx)
	return seq
}

// SetCursor stores the seq up to which a reader has read the transitions.
func SetCursor(tx *Tx, name string, seq uint64) error {
	return entry[uint64](cursorPrefix+name).set(tx, seq)
}

// NodeConditions returns the conditions of the node itself. One that is missing was
// always True.
func NodeConditions(tx *Tx) ([]v1.Condition, error) { return nodeKey.get(tx) }

// SetNodeCondition sets a condition of the node itself in this update. If that changes
// its status, it emits a message without a container, with the message and the reason
// of c.
func SetNodeCondition(tx *Tx, c v1.Condition) error {
	list, err := NodeConditions(tx)
	if err != nil {
		return fmt.Errorf("conditions of the node: %w", err)
	}
	before := v1.FindCondition(list, c.Type).Status
	if before == c.Status || before == "" && c.Status == v1.True {
		return nil
	}
	list, _, err = ownCopy(list)
	if err != nil {
		return err
	}
	tx.Emit(v1.Event{Event: v1.EventMessage, Data: c.Message, Reason: c.Reason, Actor: tx.Actor()})
	return nodeKey.set(tx, v1.SetCondition(list, c, tx.now))
}

// Engine returns the name that SetEngine stored; empty: none.
func Engine(tx *Tx) (name string, err error) { return engineKey.get(tx) }

// SetEngine stores the name of the engine that containers are created with.
func SetEngine(tx *Tx, name string) error { return engineKey.set(tx, name) }

func restoringKey(volume string) entry[string] { return entry[string](restoringPrefix + volume) }

// Restoring returns what has reserved a volume: the id of its restore that has not finished, or v1.ByTransfer or
// v1.ByArrival; or "". If it cannot be decoded, the volume counts as being restored.
func Restoring(tx *Tx, volume string) (id string) {
	id, err := restoringKey(volume).get(tx)
	if err != nil {
		return "unknown"
	}
	return id
}

// BeginRestore stores a new restore. From now on its volume is being restored.
func BeginRestore(tx *Tx, id string, spec v1.RestoreSpec) error {
	if err := Restores.Create(tx, id, spec); err != nil {
		return err
	}
	return Reserve(tx, id, spec.VolumeID)
}

// Reserve reserves a volume, which nothing has reserved, as a restore does: nothing runs with it, and its files are
// not changed.
func Reserve(tx *Tx, by, volume string) error {
	return setRestoring(tx, volume, restoringKey(volume).set(tx, by))
}

// EndRestore ends the reservation of a volume by a restore, a transfer or an arrival, if it has it.
func EndRestore(tx *Tx, by, volume string) error {
	if Restoring(tx, volume) != by {
		return nil
	}
	return setRestoring(tx, volume, restoringKey(volume).remove(tx))
}

// AbandonRestore ends the reservation of a volume by a restore whose record cannot be read,
// if it has one.
func AbandonRestore(tx *Tx, id string) error {
	var keys []string // collected first: the loop below changes what it would iterate over
	for key := range tx.from(restoringPrefix, "") {
		keys = append(keys, key)
	}
	for _, key := range keys {
		if err := EndRestore(tx, id, key[len(restoringPrefix):]); err != nil {
			return err
		}
	}
	return nil
}

// setRestoring records that a volume has changed, unless err is one.
func setRestoring(tx *Tx, volume string, err error) error {
	if err == nil {
		tx.recordChange(Change{Kind: Volumes.kind(), ID: volume, What: StatusChanged})
	}
	return err
}

// BackupTotal is what the backups of a target add up to. Those that are being deleted
// count, because their archives may still be there, and those that arrive from another node,
// because theirs are expected.
type BackupTotal struct {
	Backups int64
	Bytes   int64 // of their archives
}

// BackupTotals returns the totals of the targets.
func BackupTotals(tx *Tx) map[v1.Target]BackupTotal {
	totals := map[v1.Target]BackupTotal{}
	for _, value := range tx.from(Backups.prefix(), "") {
		b := Backups.of(value)
		t := totals[b.Spec.Target]
		t.Backups++
		t.Bytes += b.Status.Size
		totals[b.Spec.Target] = t
	}
	for _, b := range arriving(tx, "") {
		t := totals[b.Spec.Target]
		t.Backups++
		t.Bytes += b.Status.Size
		totals[b.Spec.Target] = t
	}
	return totals
}

// arriving returns the backups that arrive from other nodes, of a volume or of all.
func arriving(tx *Tx, volume string) (all []v1.ArrivalBackup) {
	for a := range Arrivals.After(tx, "") {
		if a.Spec.Ended == "" && (volume == "" || a.Spec.Container.VolumeID == volume) {
			all = append(all, a.Spec.Backups...)
		}
	}
	return all
}

// BackupUse returns what counts against the limits of backups before a new one. The archives
// of a volume with a limit may have most bytes, or ten times the limit if that is more; if most
// is 0, they have no limit.
func BackupUse(tx *Tx, volume string, target v1.Target, most int64) (u v1.BackupUse) {
	for t, total := range BackupTotals(tx) {
		if u.Host += total.Backups; t == target {
			u.Bytes = total.Bytes
		}
	}
	for _, b := range Backups.ListBy(tx, volume) {
		u.Volume++
		u.VolumeBytes += b.Status.Size
	}
	for _, b := range arriving(tx, volume) {
		u.Volume++
		u.VolumeBytes += b.Status.Size
	}
	if v, err := Volumes.Get(tx, volume); err == nil {
		if limit := LimitOf(tx, v); limit > 0 && most > 0 {
			u.VolumeMost = max(most, 10*min(limit, math.MaxInt64/10))
		}
	}
	return u
}

// LimitOf returns the smallest limit of a volume and of the containers that use it in bytes, or 0 for
// no limit. It leaves out containers whose record is damaged.
func LimitOf(tx *Tx, v v1.Volume) int64 {
	var users []v1.ContainerSpec
	for _, c := range Containers.ListBy(tx, v.Meta.ID) {
		users = append(users, c.Spec)
	}
	return v1.SmallestLimit(v.Spec, users)
}

// PurgeBackup removes the records of a backup and of its restores.
func PurgeBackup(tx *Tx, id string) error {
	for _, restore := range Restores.IDsBy(tx, id) {
		if err := Restores.Purge(tx, restore); err != nil {
			return err
		}
	}
	return Backups.Purge(tx, id)
}

func skippedKey(id string) string { return "skipped/" + id }

// SetSkipped stores the skipped entries of a backup whose BackupStatus.Skipped has the first
// ones only: a thousand names of each backup would not fit into memory.
func SetSkipped(tx *Tx, id string, list []v1.Skipped) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return tx.write(skippedKey(id), text)
}

// SkippedOf returns the skipped entries of a backup. It is for views.
func SkippedOf(tx *Tx, b v1.Backup) (list []v1.Skipped, err error) {
	err = tx.read(func(t *kv.Txn) error {
		item, err := t.Get(skippedKey(b.Meta.ID))
		if err != nil {
			return err
		}
		return unmarshal(item, &list)
	})
	if errors.Is(err, ErrNotFound) {
		return b.Status.Skipped, nil
	}
	return list, Backups.wrap(b.Meta.ID, err)
}
