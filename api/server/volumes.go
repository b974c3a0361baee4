package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// volumeWait bounds how long createVolume waits for the directory.
const volumeWait = 2 * time.Second

// volumes holds the handlers for volumes, except for their files.
type volumes struct{ *Server }

func (s volumes) routes() []route {
	return []route{
		node(post("/volumes", v1.ScopeAdmin, s.createVolume)),
		get("/volumes", v1.ScopeRead, s.listVolumes),
		get("/volumes/:volume", v1.ScopeRead, s.getVolume),
		del("/volumes/:volume", v1.ScopeAdmin, s.deleteVolume),
	}
}

type newVolumeBody struct {
	VolumeID string `json:"volume_id"`
	Path     string `json:"path"`
}

type volumeBody struct {
	newVolumeBody
	Size      int64    `json:"size"`
	SizeLimit int64    `json:"size_limit"`
	CreatedAt int64    `json:"created_at"`
	UsedBy    []string `json:"used_by"`
}

type volumesBody struct {
	Volumes []volumeBody `json:"volumes"`
}

type messageBody struct {
	Message string `json:"message"`
}

// createVolume answers when the directory exists, or after volumeWait: the volume
// is stored, so the directory will be created in any case.
func (s volumes) createVolume(c *fiber.Ctx) error {
	var body struct {
		SizeLimit int64 `json:"size_limit"`
	}
	if err := s.decodeStrict(c, &body); err != nil {
		return err
	}
	id, err := intent.CreateVolume(s.store, body.SizeLimit)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), volumeWait)
	defer cancel()
	_, _ = store.Volumes.Await(ctx, s.store, id, func(v v1.Volume) bool { return v.Status.Created })
	return reply(c, fiber.StatusCreated, newVolumeBody{id, s.volumePath(id)})
}

// volumePath returns the directory of a volume on the host.
func (s *Server) volumePath(id string) string {
	return filepath.Join(s.settings.Current().Storage.VolumesPath, id)
}

// findVolume returns the volume that the path of a request names and the
// containers that use it. It is v1.ErrVolumeNotFound if the caller may not see it.
func (s volumes) findVolume(c *fiber.Ctx, tx *store.Tx) (v1.Volume, []string, error) {
	volume, err := intent.FindVolume(tx, param(c, "volume"))
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
func (s volumes) volumeID(c *fiber.Ctx) (id string, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		if !callerOf(c).Restricted() { // no need to find the containers that use it
			volume, err := intent.FindVolume(tx, param(c, "volume"))
			id = volume.Meta.ID
			return err
		}
		volume, _, err := s.findVolume(c, tx)
		id = volume.Meta.ID
		return err
	})
	return id, err
}

// volumeBody returns a volume as caller sees it: used_by has only the containers
// that the caller may access.
func (s volumes) volumeBody(v v1.Volume, by []string, caller auth.Principal) volumeBody {
	seen := []string{}
	for _, id := range by {
		if caller.CanAccess(id) {
			seen = append(seen, id)
		}
	}
	return volumeBody{
		newVolumeBody: newVolumeBody{v.Meta.ID, s.volumePath(v.Meta.ID)},
		Size:          v.Status.Size,
		SizeLimit:     v.Spec.SizeLimit,
		CreatedAt:     v.Meta.CreatedAt.Unix(),
		UsedBy:        seen,
	}
}

func (s volumes) getVolume(c *fiber.Ctx) error {
	var body volumeBody
	err := s.store.View(func(tx *store.Tx) error {
		volume, by, err := s.findVolume(c, tx)
		body = s.volumeBody(volume, by, callerOf(c))
		return err
	})
	if err != nil {
		return err
	}
	return ok(c, body)
}

func (s volumes) listVolumes(c *fiber.Ctx) error {
	body := volumesBody{Volumes: []volumeBody{}}
	err := s.store.View(func(tx *store.Tx) error {
		list, err := store.Volumes.List(tx)
		if err != nil {
			return err
		}
		users, err := intent.VolumeUsers(tx)
		for _, v := range list {
			if by := users[v.Meta.ID]; !v.Meta.Deleted && callerOf(c).CanAccessAny(by) {
				body.Volumes = append(body.Volumes, s.volumeBody(v, by, callerOf(c)))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return ok(c, body)
}

func (s volumes) deleteVolume(c *fiber.Ctx) error {
	id, err := s.volumeID(c)
	if err != nil {
		return err
	}
	if err := intent.DeleteVolume(s.store, id); err != nil {
		return err
	}
	return ok(c, messageBody{"Volume deleted successfully"})
}
