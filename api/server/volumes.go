package server

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"berth/api/auth"
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// volumeWait bounds how long the creation of a volume waits for the directory.
const volumeWait = 2 * time.Second

// volumes holds the handlers for volumes, except for their files.
type volumes struct {
	store    *store.Store
	settings auth.Settings
}

type newVolumeBody struct {
	VolumeID string `json:"volume_id"`
	Path     string `json:"path"`
}

type volumesBody struct {
	Volumes  []v1.VolumeView `json:"volumes"`
	Continue string          `json:"continue,omitempty"`
}

type messageBody struct {
	Message string `json:"message"`
}

func (s volumes) check(c *call, spec *v1.VolumeSpec) error {
	intent.CheckVolume(&c.fieldErrors, spec, s.settings.Current().Kubernetes.Claims)
	return nil
}

// create answers when the directory exists, or after volumeWait: the volume
// is stored, so the directory will be created in any case.
func (s volumes) create(c *call, spec v1.VolumeSpec) (newVolumeBody, error) {
	answer := func(id string) newVolumeBody { return newVolumeBody{id, volumePath(s.settings, id, spec.Storage)} }
	c.created = true
	id, err := intent.CreateVolume(c.promise(s.store, func(id string) any { return answer(id) }), spec)
	if err != nil {
		return newVolumeBody{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), volumeWait)
	defer cancel()
	_, _ = store.Volumes.Await(ctx, s.store, id, func(v v1.Volume) bool { return v.Status.Created })
	return answer(id), nil
}

// volumePath returns the directory of a volume on the host.
func volumePath(settings auth.Settings, id, storage string) string {
	return filepath.Join(settings.Current().VolumesIn(storage), id)
}

// findVolume returns the volume that the path of a request names and the
// containers that use it. It is v1.ErrVolumeNotFound if the caller may not see it.
func (c *call) findVolume(tx *store.Tx) (v1.Volume, []string, error) {
	volume, err := intent.FindVolume(tx, c.Params("volume"))
	if err != nil {
		return volume, nil, err
	}
	by := intent.UsersOf(tx, volume.Meta.ID)
	if !c.caller.CanAccessAny(by) {
		return volume, nil, v1.ErrVolumeNotFound
	}
	return volume, by, nil
}

// volumeID returns the full id of the volume that the path of a request names.
func (c *call) volumeID(db *store.Store) (id string, err error) {
	defer func() {
		if err == nil {
			c.describe(func(a *v1.Audit) { a.Object, a.Volume = id, id })
		}
	}()
	var volume v1.Volume
	if c.caller.Restricted() {
		volume, _, err = c.findVolume(db.Read())
	} else { // no need to find the containers that use it
		volume, err = intent.FindVolume(db.Read(), c.Params("volume"))
	}
	return volume.Meta.ID, err
}

// view returns a volume as caller sees it: used_by has only the containers
// that the caller may access.
func (s volumes) view(v v1.Volume, by []string, caller auth.Principal) v1.VolumeView {
	view := v1.VolumeView{VolumeID: v.Meta.ID, Path: volumePath(s.settings, v.Meta.ID, v.Spec.Storage), VolumeSpec: v.Spec,
		Size: v.Status.Size, CreatedAt: v.Meta.CreatedAt.Unix(), Ready: v.Status.Ready(),
		Class: v.Status.Class, Message: v.Status.Message()}
	for _, id := range by {
		if caller.CanAccess(id) {
			view.UsedBy = append(view.UsedBy, id)
		}
	}
	return view
}

func (s volumes) get(c *call) (view v1.VolumeView, err error) {
	volume, by, err := c.findVolume(s.store.Read())
	return s.view(volume, by, c.caller), err
}

// list answers with the volumes that match every ?label=.
func (s volumes) list(c *call) (body volumesBody, err error) {
	want, err := labelQuery(c)
	if err != nil {
		return body, err
	}
	page, err := pageOf(c)
	if err != nil {
		return body, err
	}
	body.Volumes, body.Continue, err = s.page(s.store.Read(), c.caller, page, want)
	return body, err
}

// page returns a page of the volumes with some labels that caller may see.
func (s volumes) page(tx *store.Tx, caller auth.Principal, p listPage, labels []string) (list []v1.VolumeView, next string, err error) {
	show := func(v v1.Volume) (v1.VolumeView, bool) {
		if v.Meta.Deleted || !hasLabels(v.Spec.Labels, labels) {
			return v1.VolumeView{}, false
		}
		return s.view(v, intent.UsersOf(tx, v.Meta.ID), caller), true
	}
	found := store.Volumes.After(tx, p.after)
	if caller.Restricted() { // it reads no others
		ids, err := caller.Volumes(tx)
		if err != nil {
			return nil, "", err
		}
		found = store.Volumes.Each(tx, slices.DeleteFunc(ids, func(id string) bool { return id <= p.after }))
	}
	list, next = listShown(p, found, show)
	return list, next, nil
}

func (s volumes) checkChange(c *call, change *v1.VolumeChange) error {
	intent.CheckVolumeChange(&c.fieldErrors, *change)
	return nil
}

// patch changes the name and the labels of a volume. A field that is absent stays as it
// is; labels replace the ones before as a whole.
func (s volumes) patch(c *call, change v1.VolumeChange) (v1.VolumeView, error) {
	id, err := c.volumeID(s.store)
	if err != nil {
		return v1.VolumeView{}, err
	}
	if err := intent.ChangeVolume(c.writer(s.store), id, change); err != nil {
		return v1.VolumeView{}, err
	}
	return s.get(c)
}

func (s volumes) delete(c *call) (messageBody, error) {
	id, err := c.volumeID(s.store)
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Volume deleted successfully"}, intent.DeleteVolume(c.writer(s.store), id)
}
