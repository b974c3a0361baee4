package server

import (
	"context"
	"errors"
	"iter"
	"maps"
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
	permits  permits
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
	intent.CheckBackup(&c.fieldErrors, r, s.archives.Has)
	return c.mayQuiesce(r.Quiesce)
}

func (s backups) create(c *call, r v1.BackupRequest) (createdBackupBody, error) {
	volume, maker, err := c.quiesces(s.store, r.Quiesce)
	if err != nil {
		return createdBackupBody{}, err
	}
	id := intent.NewID()
	c.describe(func(a *v1.Audit) { a.Object = id })
	answer := createdBackupBody{"Backup started", id, v1.JobPending}
	spec := v1.BackupSpec{VolumeID: volume, BackupRequest: r, Maker: maker}
	return answer, intent.CreateBackup(c.promise(s.store, func(string) any { return answer }), id, spec, s.settings.Current().Backups)
}

// put makes a backup whose id the client chose. The same request again answers with the same backup.
func (s backups) put(c *call, r v1.BackupRequest) (view v1.BackupView, err error) {
	id := c.Params("backup")
	if !intent.IsID(id) {
		return view, v1.Errorf(v1.InvalidRequest, "backup: must be a UUID in lower case")
	}
	volume, maker, err := c.quiesces(s.store, r.Quiesce)
	if err != nil {
		return view, err
	}
	c.describe(func(a *v1.Audit) { a.Object = id })
	spec := v1.BackupSpec{VolumeID: volume, BackupRequest: r, Maker: maker}
	if err := intent.CreateBackup(c.writer(s.store), id, spec, s.settings.Current().Backups); err != nil {
		return view, err
	}
	return s.get(c)
}

// mayQuiesce returns a refusal if the caller must not type the commands of q.
func (c *call) mayQuiesce(q *v1.Quiesce) error {
	if q == nil {
		return nil
	}
	return c.caller.MayType(q.Before, q.After)
}

// quiesces returns the volume in the path of a request for a backup or a policy, and its maker. It
// returns v1.ErrContainerNotFound if the caller may not access the container to quiesce.
func (c *call) quiesces(db *store.Store, q *v1.Quiesce) (volume string, maker v1.Maker, err error) {
	volume, err = c.volumeID(db)
	if err != nil || q == nil {
		return volume, c.caller.Maker(""), err
	}
	if !c.caller.CanAccess(q.Container) {
		return volume, maker, v1.ErrContainerNotFound
	}
	o, err := intent.FindContainer(db.Read(), q.Container)
	return volume, c.caller.Maker(o.Meta.UID), err
}

func (s backups) get(c *call) (view v1.BackupView, err error) {
	tx := s.store.Read()
	b, err := c.findBackup(tx)
	if err == nil {
		b.Status.Skipped, err = store.SkippedOf(tx, b)
	}
	if err != nil {
		return view, err
	}
	return v1.ViewOfBackup(b, intent.RestoresOf(tx, b.Meta.ID)), nil
}

func (s backups) delete(c *call) (messageBody, error) {
	b, err := c.findBackup(s.store.Read())
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Backup deletion started"}, intent.DeleteBackup(c.writer(s.store), b.Meta.ID)
}

type startedRestoreBody struct {
	Message   string `json:"message"`
	RestoreID string `json:"restore_id"`
}

func (s backups) checkRestore(c *call, r *v1.RestoreRequest) error {
	intent.CheckRestore(&c.fieldErrors, r)
	return nil
}

func (s backups) restore(c *call, r v1.RestoreRequest) (startedRestoreBody, error) {
	spec := v1.RestoreSpec{RestoreRequest: r}
	if err := c.resolveRestore(s.store.Read(), &spec); err != nil {
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
	if least := limit.Jobs().Every; c.caller.Restricted() && r.Every != 0 && time.Duration(r.Every) < least { // those of cron are as far apart
		c.fieldErrors.Add("every", "must be at least %s with a token that is limited to containers", least)
	}
	intent.CheckPolicy(&c.fieldErrors, &r.PolicySpec, s.settings.Current().Backups, s.archives.Has)
	return c.mayQuiesce(r.Quiesce)
}

// putPolicy replaces the backup policy of a volume as a whole.
func (s backups) putPolicy(c *call, r v1.PolicyView) (v1.PolicyView, error) {
	volume, maker, err := c.quiesces(s.store, r.Quiesce)
	if err != nil {
		return r, err
	}
	r.Maker = maker
	if err := intent.PutPolicy(c.writer(s.store), volume, r.PolicySpec); err != nil {
		return r, err
	}
	return s.policy(c)
}

func (s backups) policy(c *call) (view v1.PolicyView, err error) {
	tx := s.store.Read()
	v, _, err := c.findVolume(tx)
	if err != nil {
		return view, err
	}
	p, err := intent.FindPolicy(tx, v.Meta.ID)
	return v1.PolicyView{VolumeID: p.Meta.ID, PolicySpec: p.Spec, NextRunAt: p.Status.NextRunAt, Message: p.Status.Message}, err
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

// newestBackups yields the backups behind a rank with their ranks, the newest first, of the
// volumes for which canAccess returns true.
func newestBackups(tx *store.Tx, rank string, canAccess func(volume string) bool) iter.Seq2[string, v1.Backup] {
	by := map[string]v1.Backup{}
	for b := range store.Backups.After(tx, "") {
		if at := b.Meta.Rank(); at > rank && canAccess(b.Spec.VolumeID) {
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
		switch can := c.caller.CanAccessAny(intent.UsersOf(tx, v.Meta.ID)); {
		case err == nil && can:
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
	tx := s.store.Read()
	volume, err := volumeOf(tx)
	if err != nil {
		return body, err
	}
	canAccess, err := backupAccess(tx, c.caller, volume)
	if err != nil {
		return body, err
	}
	list, next := take(page, newestBackups(tx, page.after, canAccess))
	body.Continue = next
	for _, b := range list {
		body.Backups = append(body.Backups, v1.ViewOfBackup(b, intent.RestoresOf(tx, b.Meta.ID)))
	}
	return body, nil
}

// backupAccess returns whether caller can access the backups of a volume. It is false for all
// volumes but wanted, unless that is empty.
func backupAccess(tx *store.Tx, caller auth.Principal, wanted string) (func(volume string) bool, error) {
	if wanted != "" { // caller can access it
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

// findReadable returns the completed backup that the path of a request names, whose content the caller may read.
func (s backups) findReadable(c *call) (v1.Backup, error) {
	tx := s.store.Read()
	b, err := c.findBackup(tx)
	switch {
	case err != nil:
	case c.caller.Restricted() && len(store.DeniedFiles(tx, b.Spec.VolumeID)) > 0:
		err = v1.Errorf(v1.FileDenied, "Backup has files that denied_files of the container denies to limited tokens: read it with another token")
	case v1.BackupStateOf(b) != v1.JobCompleted:
		err = v1.ErrNotCompleted
	}
	return b, err
}

// listTime is how long the archive of a backup is read for a list of one of its folders.
const listTime = time.Minute

// files answers with the entries of a folder of a backup.
func (s backups) files(c *call) error {
	folder, err := folderQuery(c, v1.DotsInNames)
	if err != nil {
		return err
	}
	b, err := s.findReadable(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.Context(c.Ctx)
	defer cancel()
	ctx, done, err := s.sessions.beginOperation(ctx, c, b.Spec.VolumeID)
	if err != nil {
		return err
	}
	defer done()
	leave, err := enter(ctx, c.claim(s.store, b.Spec.VolumeID), s.permits.archives, s.permits.lists)
	defer leave()
	if err != nil {
		return err
	}
	reading, stop := context.WithTimeout(ctx, listTime)
	defer stop()
	list, err := s.archives.List(reading, b, folder)
	switch ended := context.Cause(ctx); {
	case err == nil:
		return c.answer(filesBody{list}, nil) // in the permit: the list and its JSON are large
	case errors.Is(ended, context.Canceled):
		return edge.ErrUnavailable // the client is gone, or the server shuts down
	case ended != nil:
		return ended
	case reading.Err() != nil:
		return v1.Errorf(v1.SizeLimit, "Backup is too large to be listed within %s: restore paths of it unseen, or download it", listTime)
	}
	return err
}

// download answers with the archive of a backup, with the part of it that Range
// selects, or with the URL of an object in S3.
func (s backups) download(c *call) error {
	b, err := s.findReadable(c)
	if err != nil {
		return err
	}
	ctx, end := c.bounded(fetchTimeout)
	defer end()
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
