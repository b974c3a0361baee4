package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// volumeWait bounds how long the creation of a volume waits for the directory.
const volumeWait = 2 * time.Second

// volumes holds the handlers for volumes, except for their files.
type volumes struct {
	store    *store.Store
	settings auth.Settings
	decoder  decoder
}

type newVolumeBody struct {
	VolumeID string `json:"volume_id"`
	Path     string `json:"path"`
}

type volumeBody struct {
	newVolumeBody
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Size      int64             `json:"size"`
	SizeLimit int64             `json:"size_limit"`
	CreatedAt int64             `json:"created_at"`
	UsedBy    []string          `json:"used_by"`
	Ready     bool              `json:"ready"`
}

type volumesBody struct {
	Volumes  []volumeBody `json:"volumes"`
	Continue string       `json:"continue,omitempty"`
}

type messageBody struct {
	Message string `json:"message"`
}

// create answers when the directory exists, or after volumeWait: the volume
// is stored, so the directory will be created in any case.
func (s volumes) create(c *fiber.Ctx) error {
	var body struct {
		SizeLimit int64             `json:"size_limit"`
		Name      string            `json:"name"`
		Labels    map[string]string `json:"labels"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	spec := v1.VolumeSpec{SizeLimit: body.SizeLimit, Name: body.Name, Labels: body.Labels}
	intent.CheckVolume(&f, &spec)
	if err := f.Err(); err != nil {
		return err
	}
	request := promise(c, s.store, fiber.StatusCreated, func(id string) any { return newVolumeBody{id, volumePath(s.settings, id)} })
	id, err := intent.CreateVolume(request, spec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), volumeWait)
	defer cancel()
	_, _ = store.Volumes.Await(ctx, s.store, id, func(v v1.Volume) bool { return v.Status.Created })
	return edge.Reply(c, fiber.StatusCreated, newVolumeBody{id, volumePath(s.settings, id)})
}

// volumePath returns the directory of a volume on the host.
func volumePath(settings auth.Settings, id string) string {
	return filepath.Join(settings.Current().Storage.VolumesPath, id)
}

// findVolume returns the volume that the path of a request names and the
// containers that use it. It is v1.ErrVolumeNotFound if the caller may not see it.
func findVolume(c *fiber.Ctx, tx *store.Tx) (v1.Volume, []string, error) {
	volume, err := intent.FindVolume(tx, edge.Param(c, "volume"))
	if err != nil {
		return volume, nil, err
	}
	by := intent.UsersOf(tx, volume.Meta.ID)
	if !callerOf(c).CanAccessAny(by) {
		return volume, nil, v1.ErrVolumeNotFound
	}
	return volume, by, nil
}

// volumeID returns the full id of the volume that the path of a request names.
func volumeID(c *fiber.Ctx, db *store.Store) (id string, err error) {
	err = db.View(func(tx *store.Tx) error {
		if !callerOf(c).Restricted() { // no need to find the containers that use it
			volume, err := intent.FindVolume(tx, edge.Param(c, "volume"))
			id = volume.Meta.ID
			return err
		}
		volume, _, err := findVolume(c, tx)
		id = volume.Meta.ID
		return err
	})
	return id, err
}

// body returns a volume as caller sees it: used_by has only the containers
// that the caller may access.
func (s volumes) body(v v1.Volume, by []string, caller auth.Principal) volumeBody {
	seen := []string{}
	for _, id := range by {
		if caller.CanAccess(id) {
			seen = append(seen, id)
		}
	}
	return volumeBody{
		newVolumeBody: newVolumeBody{v.Meta.ID, volumePath(s.settings, v.Meta.ID)},
		Name:          v.Spec.Name,
		Labels:        orEmpty(v.Spec.Labels),
		Size:          v.Status.Size,
		SizeLimit:     v.Spec.SizeLimit,
		CreatedAt:     v.Meta.CreatedAt.Unix(),
		UsedBy:        seen,
		Ready:         v.Status.Ready(),
	}
}

func (s volumes) get(c *fiber.Ctx) error {
	var body volumeBody
	err := s.store.View(func(tx *store.Tx) error {
		volume, by, err := findVolume(c, tx)
		body = s.body(volume, by, callerOf(c))
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}

// list answers with the volumes that match every ?label=.
func (s volumes) list(c *fiber.Ctx) error {
	want, err := labelQuery(c)
	if err != nil {
		return err
	}
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	var body volumesBody
	err = s.store.View(func(tx *store.Tx) (err error) {
		body.Volumes, body.Continue, err = s.page(tx, callerOf(c), page, want)
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}

// page returns a page of the volumes with some labels that caller may see.
func (s volumes) page(tx *store.Tx, caller auth.Principal, p listPage, labels []string) (list []volumeBody, next string, err error) {
	show := func(v v1.Volume) (volumeBody, bool) {
		if v.Meta.Deleted || !hasLabels(v.Spec.Labels, labels) {
			return volumeBody{}, false
		}
		return s.body(v, intent.UsersOf(tx, v.Meta.ID), caller), true
	}
	if caller.Restricted() {
		ids, err := caller.Volumes(tx)
		if err != nil {
			return nil, "", err
		}
		list, next = listSome(tx, store.Volumes, ids, p, show)
		return list, next, nil
	}
	list, next = listObjects(tx, store.Volumes, p, show)
	return list, next, nil
}

// patch changes the name and the labels of a volume. A field that is absent stays as it
// is; labels replace the ones before as a whole.
func (s volumes) patch(c *fiber.Ctx) error {
	var body struct {
		Name   *string            `json:"name"`
		Labels *map[string]string `json:"labels"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	change := intent.VolumeChange{Name: body.Name, Labels: body.Labels}
	intent.CheckVolumeChange(&f, change)
	id, err := volumeID(c, s.store)
	if err != nil || f.Any() {
		return refused(f, err)
	}
	if err := intent.ChangeVolume(requestOf(c, s.store), id, change); err != nil {
		return err
	}
	return s.get(c)
}

func (s volumes) delete(c *fiber.Ctx) error {
	id, err := volumeID(c, s.store)
	if err != nil {
		return err
	}
	if err := intent.DeleteVolume(requestOf(c, s.store), id); err != nil {
		return err
	}
	return edge.OK(c, messageBody{"Volume deleted successfully"})
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
