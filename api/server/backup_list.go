package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// listedBackup is a backup as lists show it, encoded once for each revision of it.
type listedBackup struct {
	id, volume string
	place      string // in lists: the newest backup first
	body       []byte // its backupView without restores, up to the list of them
}

// listedRestore is a restore as lists show it, encoded once for each revision of it.
type listedRestore struct {
	backup, place string
	body          []byte
}

// backupLists are all backups and restores, encoded. See ADR 0121.
type backupLists struct {
	backups  *store.Projection[v1.BackupSpec, v1.BackupStatus, *listedBackup]
	restores *store.Projection[v1.RestoreSpec, v1.RestoreStatus, *listedRestore]
}

func newBackupLists(db *store.Store) *backupLists {
	return &backupLists{store.NewProjection(db, store.Backups, encodeBackup), store.NewProjection(db, store.Restores, encodeRestore)}
}

// prepare encodes all backups and restores, so that the first list need not. That list makes up
// for an error.
func (l *backupLists) prepare() {
	_ = l.backups.Read(func([]store.Projected[*listedBackup], uint64) {})
	_ = l.restores.Read(func([]store.Projected[*listedRestore], uint64) {})
}

// endOfBackup ends a backupView without restores.
var endOfBackup = []byte("]}")

func encodeBackup(o v1.Backup) *listedBackup {
	body, _ := json.Marshal(viewOfBackup(o, nil)) // cannot fail: plain data
	return &listedBackup{o.Meta.ID, o.Spec.VolumeID, placeOf(o.Meta), bytes.TrimSuffix(body, endOfBackup)}
}

func encodeRestore(o v1.Restore) *listedRestore {
	body, _ := json.Marshal(viewOfRestore(o)) // cannot fail: plain data
	return &listedRestore{o.Spec.BackupID, placeOf(o.Meta), body}
}

// placeOf returns a text that sorts an object before the older ones.
func placeOf(m v1.Meta) string {
	return fmt.Sprintf("%019d/%s", math.MaxInt64-m.CreatedAt.UnixNano(), m.ID)
}

// after returns the backups behind a place, the newest first, of the volumes for which sees
// returns true.
func (l *backupLists) after(place string, sees func(volume string) bool) (list []*listedBackup, err error) {
	err = l.backups.Read(func(items []store.Projected[*listedBackup], _ uint64) {
		for _, item := range items {
			if b := item.Value; b.place > place && sees(b.volume) {
				list = append(list, b)
			}
		}
	})
	slices.SortFunc(list, func(a, b *listedBackup) int { return strings.Compare(a.place, b.place) })
	return list, err
}

// byPlace yields backups with their places.
func byPlace(list []*listedBackup) iter.Seq2[string, *listedBackup] {
	return func(yield func(string, *listedBackup) bool) {
		for _, b := range list {
			if !yield(b.place, b) {
				return
			}
		}
	}
}

// restoresOf returns the restores of some backups by the id of the backup, the newest first.
func (l *backupLists) restoresOf(backups []*listedBackup) (map[string][]*listedRestore, error) {
	by := make(map[string][]*listedRestore, len(backups))
	for _, b := range backups {
		by[b.id] = nil
	}
	err := l.restores.Read(func(items []store.Projected[*listedRestore], _ uint64) {
		for _, item := range items {
			if list, listed := by[item.Value.backup]; listed {
				by[item.Value.backup] = append(list, item.Value)
			}
		}
	})
	for _, list := range by {
		slices.SortFunc(list, func(a, b *listedRestore) int { return strings.Compare(a.place, b.place) })
	}
	return by, err
}

// joinBackups returns a list of backups as JSON: {"backups": [...], "continue": "..."}.
func joinBackups(list []*listedBackup, restores map[string][]*listedRestore, next string) []byte {
	size := 100
	for _, b := range list {
		size += len(b.body) + len(endOfBackup) + 1
	}
	body := append(make([]byte, 0, size), `{"backups":[`...)
	for i, b := range list {
		body = append(separated(body, i), b.body...)
		for k, r := range restores[b.id] {
			body = append(separated(body, k), r.body...)
		}
		body = append(body, endOfBackup...)
	}
	body = append(body, ']')
	if next != "" {
		body = append(append(append(body, `,"continue":"`...), next...), '"') // it is base64
	}
	return append(body, '}')
}

// separated appends a comma before each element but the first one.
func separated(body []byte, index int) []byte {
	if index > 0 {
		return append(body, ',')
	}
	return body
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
	var sees func(volume string) bool
	err = s.store.View(func(tx *store.Tx) error {
		volume, err := volumeOf(tx)
		if err != nil {
			return err
		}
		sees, err = seesBackups(tx, callerOf(c), volume)
		return err
	})
	if err != nil {
		return err
	}
	all, err := s.lists.after(page.after, sees)
	if err != nil {
		return err
	}
	list, next := take(page, byPlace(all))
	restores, err := s.lists.restoresOf(list)
	if err != nil {
		return err
	}
	return edge.SendJSON(c, joinBackups(list, restores, next))
}

// seesBackups returns whether caller may see the backups of a volume. It is false for all
// volumes but wanted, unless that is empty.
func seesBackups(tx *store.Tx, caller auth.Principal, wanted string) (func(volume string) bool, error) {
	if wanted != "" { // caller may see it
		return func(volume string) bool { return volume == wanted }, nil
	}
	if !caller.Restricted() {
		return func(string) bool { return true }, nil
	}
	own, err := caller.Volumes(tx)
	return func(volume string) bool { _, found := slices.BinarySearch(own, volume); return found }, err
}
