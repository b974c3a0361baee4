package server

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

type backupsBody struct {
	Backups  []backupView `json:"backups"`
	Continue string       `json:"continue,omitempty"`
}

// placeOf returns a text that sorts an object before the older ones.
func placeOf(m v1.Meta) string {
	return fmt.Sprintf("%019d/%s", math.MaxInt64-m.CreatedAt.UnixNano(), m.ID)
}

// newestBackups yields the backups behind a place with their places, the newest first, of the
// volumes for which sees returns true.
func newestBackups(tx *store.Tx, place string, sees func(volume string) bool) iter.Seq2[string, v1.Backup] {
	by := map[string]v1.Backup{}
	for b := range store.Backups.After(tx, "") {
		if at := placeOf(b.Meta); at > place && sees(b.Spec.VolumeID) {
			by[at] = b
		}
	}
	return func(yield func(string, v1.Backup) bool) {
		for _, at := range slices.Sorted(maps.Keys(by)) {
			if !yield(at, by[at]) {
				return
			}
		}
	}
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
	body := backupsBody{Backups: []backupView{}}
	err = s.store.View(func(tx *store.Tx) error {
		volume, err := volumeOf(tx)
		if err != nil {
			return err
		}
		sees, err := seesBackups(tx, callerOf(c), volume)
		if err != nil {
			return err
		}
		list, next := take(page, newestBackups(tx, page.after, sees))
		body.Continue = next
		for _, b := range list {
			restores, err := intent.RestoresOf(tx, b.Meta.ID)
			if err != nil {
				return err
			}
			body.Backups = append(body.Backups, viewOfBackup(b, restores))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
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
