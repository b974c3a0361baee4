package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// backups holds the handlers for backups, their policies and restores.
type backups struct {
	store    *store.Store
	settings Settings
	archives Archives
	sessions sessions
}

// findBackup returns the backup that the path of a request names. It is
// v1.ErrBackupNotFound if the caller may access no container that uses its volume.
func (c *call) findBackup(tx *store.Tx) (v1.Backup, error) {
	b, err := intent.FindBackup(tx, c.Params("backup"))
	if err == nil && !c.caller.CanAccessAny(intent.UsersOf(tx, b.Spec.VolumeID)) {
		err = v1.ErrBackupNotFound
	}
	if err == nil {
		c.describe(func(a *v1.Audit) { a.Object, a.Volume = b.Meta.ID, b.Spec.VolumeID })
	}
	return b, err
}

type createdBackupBody struct {
	Message  string      `json:"message"`
	BackupID string      `json:"backup_id"`
	State    v1.JobState `json:"state"`
}

func (s backups) check(c *call, r *v1.BackupRequest) error {
	intent.CheckBackup(&c.faults, r, s.archives.Has(v1.TargetS3))
	return c.mayQuiesce(r.Quiesce)
}

func (s backups) create(c *call, r v1.BackupRequest) (createdBackupBody, error) {
	volume, err := c.volumeToQuiesce(s.store, r.Quiesce)
	if err != nil {
		return createdBackupBody{}, err
	}
	id := intent.NewID()
	c.describe(func(a *v1.Audit) { a.Object = id })
	answer := createdBackupBody{"Backup started", id, v1.JobPending}
	spec := v1.BackupSpec{VolumeID: volume, BackupRequest: r}
	return answer, intent.CreateBackup(c.promise(s.store, func(string) any { return answer }), id, spec, s.settings.Current().Backups)
}

// mayQuiesce returns auth.ErrScope if the caller must not send commands to consoles.
func (c *call) mayQuiesce(q *v1.Quiesce) error {
	if q != nil && !c.caller.HasScope(v1.ScopeConsole) {
		return auth.ErrScope
	}
	return nil
}

// volumeToQuiesce returns the volume in the path of a request for a backup or a policy. It returns
// v1.ErrContainerNotFound if the caller may not access the container to quiesce.
func (c *call) volumeToQuiesce(db *store.Store, q *v1.Quiesce) (volume string, err error) {
	volume, err = c.volumeID(db)
	if err == nil && q != nil && !c.caller.CanAccess(q.Container) {
		err = v1.ErrContainerNotFound
	}
	return volume, err
}

func (s backups) get(c *call) (view v1.BackupView, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		b, err := c.findBackup(tx)
		if err != nil {
			return err
		}
		if b.Status.Skipped, err = store.SkippedOf(tx, b); err != nil {
			return err
		}
		restores, err := intent.RestoresOf(tx, b.Meta.ID)
		view = v1.ViewOfBackup(b, restores)
		return err
	})
	return view, err
}

func (s backups) delete(c *call) (messageBody, error) {
	var id string
	err := s.store.View(func(tx *store.Tx) error {
		b, err := c.findBackup(tx)
		id = b.Meta.ID
		return err
	})
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Backup deletion started"}, intent.DeleteBackup(c.writer(s.store), id)
}

type startedRestoreBody struct {
	Message   string `json:"message"`
	RestoreID string `json:"restore_id"`
}

func (s backups) checkRestore(c *call, r *v1.RestoreRequest) error {
	intent.CheckRestoreMode(&c.faults, &r.Mode)
	return nil
}

func (s backups) restore(c *call, r v1.RestoreRequest) (startedRestoreBody, error) {
	spec := v1.RestoreSpec{RestoreRequest: r}
	if err := s.store.View(func(tx *store.Tx) error { return c.resolveRestore(tx, &spec) }); err != nil {
		return startedRestoreBody{}, err
	}
	id := intent.NewID()
	answer := startedRestoreBody{"Restore started", id}
	return answer, intent.RestoreBackup(c.promise(s.store, func(string) any { return answer }), id, spec)
}

// resolveRestore sets the backup and the volume of a restore. The caller may access
// both.
func (c *call) resolveRestore(tx *store.Tx, spec *v1.RestoreSpec) error {
	b, err := c.findBackup(tx)
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
	c.describe(func(a *v1.Audit) { a.Volume = v.Meta.ID })
	return nil
}

func (s backups) checkPolicy(c *call, r *v1.PolicyView) error {
	if least := limit.Jobs().Every; c.caller.Restricted() && time.Duration(r.Every) < least {
		c.faults.Add("every", "must be at least %s with a token that is limited to containers", least)
	}
	intent.CheckPolicy(&c.faults, &r.PolicySpec, s.settings.Current().Backups, s.archives.Has(v1.TargetS3))
	return c.mayQuiesce(r.Quiesce)
}

// putPolicy replaces the backup policy of a volume as a whole.
func (s backups) putPolicy(c *call, r v1.PolicyView) (v1.PolicyView, error) {
	volume, err := c.volumeToQuiesce(s.store, r.Quiesce)
	if err != nil {
		return r, err
	}
	if err := intent.PutPolicy(c.writer(s.store), volume, r.PolicySpec); err != nil {
		return r, err
	}
	return s.policy(c)
}

func (s backups) policy(c *call) (view v1.PolicyView, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		v, _, err := c.findVolume(tx)
		if err != nil {
			return err
		}
		p, err := intent.FindPolicy(tx, v.Meta.ID)
		view = v1.PolicyView{VolumeID: p.Meta.ID, PolicySpec: p.Spec, NextRunAt: p.Status.NextRunAt, Message: p.Status.Message}
		return err
	})
	return view, err
}

func (s backups) deletePolicy(c *call) (messageBody, error) {
	volume, err := c.volumeID(s.store)
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Backup policy deleted successfully"}, intent.DeletePolicy(c.writer(s.store), volume)
}

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

// fetchTimeout bounds how long a target may take to open an archive.
const fetchTimeout = 10 * time.Second

// archiveType is the media type of an archive.
const archiveType = "application/zstd"

// download answers with the archive of a backup, with the part of it that Range
// selects, or with the URL of an object in S3.
func (s backups) download(c *call) error {
	var b v1.Backup
	err := s.store.View(func(tx *store.Tx) (err error) {
		b, err = c.findBackup(tx)
		return err
	})
	switch {
	case err != nil:
		return err
	case v1.BackupStateOf(b) != v1.JobCompleted:
		return v1.ErrNotCompleted
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	key := v1.ArchiveKey(b.Meta.ID)
	file, url, err := s.archives.Fetch(ctx, b.Spec.Target, key, key)
	if err != nil {
		return err
	}
	if url != "" {
		c.Set(fiber.HeaderCacheControl, "no-store")
		return c.Redirect(url, fiber.StatusFound)
	}
	done, err := s.sessions.beginDownload(c, onVolumeOf(b.Spec.VolumeID))
	if err != nil {
		file.Close()
		return err
	}
	tag := strings.TrimPrefix(b.Status.Checksum, "sha256:")
	return edge.SendFile(c.Ctx, file, edge.Download{Name: key, Type: archiveType, Tag: tag}, done)
}
