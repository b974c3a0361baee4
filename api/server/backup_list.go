package server

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"berth/api/auth"
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

type backupsBody struct {
	Backups  []v1.BackupView `json:"backups"`
	Continue string          `json:"continue,omitempty"`
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
func (s backups) list(c *call) (backupsBody, error) {
	return s.page(c, func(tx *store.Tx) (string, error) {
		volume := c.Query("volume")
		if volume == "" {
			return "", nil
		}
		v, err := intent.FindVolume(tx, volume)
		switch sees := c.caller.CanAccessAny(intent.UsersOf(tx, v.Meta.ID)); {
		case err == nil && sees:
			return v.Meta.ID, nil
		case err == nil:
			return "", v1.ErrVolumeNotFound
		case errors.Is(err, v1.ErrVolumeNotFound) && !c.caller.Restricted() && len(store.Backups.IDsBy(tx, volume)) > 0:
			return volume, nil
		}
		return "", err
	})
}

// listOfVolume answers with the backups of the volume that the path names.
func (s backups) listOfVolume(c *call) (backupsBody, error) {
	return s.page(c, func(tx *store.Tx) (string, error) {
		v, _, err := c.findVolume(tx)
		return v.Meta.ID, err
	})
}

// page returns a page of the backups of a volume, or of all volumes if it is
// empty, the newest first.
func (s backups) page(c *call, volumeOf func(*store.Tx) (string, error)) (backupsBody, error) {
	body := backupsBody{Backups: []v1.BackupView{}}
	page, err := pageOf(c)
	if err != nil {
		return body, err
	}
	err = s.store.View(func(tx *store.Tx) error {
		volume, err := volumeOf(tx)
		if err != nil {
			return err
		}
		sees, err := seesBackups(tx, c.caller, volume)
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
			body.Backups = append(body.Backups, v1.ViewOfBackup(b, restores))
		}
		return nil
	})
	return body, err
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
