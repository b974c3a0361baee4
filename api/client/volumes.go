package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// Volumes are the calls for volumes.
type Volumes struct{ c *Client }

func volumePath(id string) string { return "/volumes/" + url.PathEscape(id) }

// List returns the volumes that have every one of these labels, each given as
// "name=value" or "name".
func (s Volumes) List(ctx context.Context, labels ...string) ([]v1.VolumeView, error) {
	return list[[]v1.VolumeView](ctx, s.c, "/volumes"+labelQuery(labels), "volumes")
}

// Get returns a volume. id is its UUID or the first 8 characters of it.
func (s Volumes) Get(ctx context.Context, id string) (v v1.VolumeView, err error) {
	err = s.c.get(ctx, volumePath(id), &v)
	return v, err
}

// Create creates a volume. Only VolumeID and Path of the result are set.
func (s Volumes) Create(ctx context.Context, r v1.VolumeSpec) (v v1.VolumeView, err error) {
	err = s.c.Call(ctx, http.MethodPost, "/volumes", r, &v)
	return v, err
}

// Change changes the name or the labels of a volume, and returns it.
func (s Volumes) Change(ctx context.Context, id string, change v1.VolumeChange) (v v1.VolumeView, err error) {
	err = s.c.Call(ctx, http.MethodPatch, volumePath(id), change, &v)
	return v, err
}

// Delete deletes a volume that no container uses, with its files.
func (s Volumes) Delete(ctx context.Context, id string) error {
	return s.c.Call(ctx, http.MethodDelete, volumePath(id), nil, nil)
}

// Backups are the calls for backups of volumes.
type Backups struct{ c *Client }

func backupPath(id string) string     { return "/backups/" + url.PathEscape(id) }
func policyPath(volume string) string { return volumePath(volume) + "/backup-policy" }

// List returns the backups of a volume, or of all volumes if it is empty, the newest
// first.
func (s Backups) List(ctx context.Context, volume string) ([]v1.BackupView, error) {
	return list[[]v1.BackupView](ctx, s.c, "/backups"+query("volume", volume), "backups")
}

// Get returns a backup.
func (s Backups) Get(ctx context.Context, id string) (b v1.BackupView, err error) {
	err = s.c.get(ctx, backupPath(id), &b)
	return b, err
}

// Create requests a backup of a volume and returns its id.
func (s Backups) Create(ctx context.Context, volume string, r v1.BackupRequest) (id string, err error) {
	return made[string](ctx, s.c, volumePath(volume)+"/backups", r, "backup_id")
}

// Put requests a backup with an id that the caller chose, a UUID, and returns it. The same request again returns the same
// backup.
func (s Backups) Put(ctx context.Context, volume, id string, r v1.BackupRequest) (b v1.BackupView, err error) {
	err = s.c.Call(ctx, http.MethodPut, volumePath(volume)+"/backups/"+url.PathEscape(id), r, &b)
	return b, err
}

// Restore requests a restore of a backup and returns the id of the restore.
func (s Backups) Restore(ctx context.Context, id string, r v1.RestoreRequest) (restore string, err error) {
	return made[string](ctx, s.c, backupPath(id)+"/restore", r, "restore_id")
}

// Files returns the entries of a folder of a backup: folders first, then files, each sorted by name. The path "" is the
// root.
func (s Backups) Files(ctx context.Context, id, path string) ([]v1.FileEntry, error) {
	return list[[]v1.FileEntry](ctx, s.c, backupPath(id)+"/files"+query("path", path), "files")
}

// Delete requests the deletion of a backup. A pending or running one is cancelled.
func (s Backups) Delete(ctx context.Context, id string) error {
	return s.c.Call(ctx, http.MethodDelete, backupPath(id), nil, nil)
}

// Download opens the archive of a backup, as Files.Download does. If the archive is in
// S3, the request is redirected there.
func (s Backups) Download(ctx context.Context, id string) (*Content, error) {
	return Files(s).download(ctx, backupPath(id)+"/content")
}

// Policy returns the backup policy of a volume.
func (s Backups) Policy(ctx context.Context, volume string) (p v1.PolicyView, err error) {
	err = s.c.get(ctx, policyPath(volume), &p)
	return p, err
}

// SetPolicy replaces the backup policy of a volume, and returns it.
func (s Backups) SetPolicy(ctx context.Context, volume string, p v1.PolicyView) (set v1.PolicyView, err error) {
	err = s.c.Call(ctx, http.MethodPut, policyPath(volume), p.PolicySpec, &set)
	return set, err
}

// DeletePolicy removes the backup policy of a volume.
func (s Backups) DeletePolicy(ctx context.Context, volume string) error {
	return s.c.Call(ctx, http.MethodDelete, policyPath(volume), nil, nil)
}

// Store opens a backup of the daemon's own store, as Files.Download does.
func (s Backups) Store(ctx context.Context) (*Content, error) {
	return Files(s).download(ctx, "/store/content")
}
