package server

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

var errPullsDisabled = v1.Errorf(v1.PullsDisabled, "Downloads are switched off: set files.pull to true in the configuration")

// pulls holds the handlers of downloads into volumes.
type pulls struct {
	store    *store.Store
	settings auth.Settings
	decoder  decoder
}

type newPullBody struct {
	Message string `json:"message"`
	PullID  string `json:"pull_id"`
}

type pullBody struct {
	PullID   string       `json:"pull_id"`
	URL      string       `json:"url"`
	Path     string       `json:"path"`
	State    v1.PullState `json:"state"`
	Progress pullProgress `json:"progress"`
	Message  *string      `json:"message"`
}

type pullProgress struct {
	Bytes int64  `json:"bytes"`
	Total *int64 `json:"total"` // null: unknown
}

func (s pulls) create(c *fiber.Ctx) error {
	var body struct {
		URL      string `json:"url" api:"required"`
		Path     string `json:"path" api:"required"`
		Checksum string `json:"checksum"`
	}
	config := s.settings.Current().Files
	if !config.Pull {
		return errPullsDisabled
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	nameFile(c, body.Path)
	spec := v1.PullSpec{URL: body.URL, Path: body.Path, Checksum: body.Checksum}
	if !f.Any() {
		intent.CheckPull(&f, spec, config.PullPrivate)
	}
	if err := f.Err(); err != nil {
		return err
	}
	if err := checkPaths(body.Path); err != nil {
		return err
	}
	if path.Clean(body.Path) == "." { // the root
		return v1.ErrInvalidPath
	}
	id, err := volumeID(c, s.store)
	if err != nil {
		return err
	}
	spec.VolumeID = id
	answer := func(pull string) any { return newPullBody{"Download started", pull} }
	pull, err := intent.CreatePull(promise(c, s.store, fiber.StatusOK, answer), spec)
	if err != nil {
		return err
	}
	return edge.OK(c, answer(pull))
}

// list answers with the downloads of a volume, the newest first.
func (s pulls) list(c *fiber.Ctx) error {
	id, err := volumeID(c, s.store)
	if err != nil {
		return err
	}
	var list []v1.Pull
	err = s.store.View(func(tx *store.Tx) error {
		list = store.Pulls.ListBy(tx, id)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b v1.Pull) int {
		return cmp.Or(b.Meta.CreatedAt.Compare(a.Meta.CreatedAt), strings.Compare(a.Meta.ID, b.Meta.ID))
	})
	bodies := make([]pullBody, len(list))
	for i, p := range list {
		bodies[i] = pullBody{PullID: p.Meta.ID, URL: p.Spec.RedactedURL(), Path: p.Spec.Path, State: cmp.Or(p.Status.State, v1.PullPending),
			Progress: pullProgress{p.Status.Bytes, p.Status.Total}, Message: orNull(p.Status.Message)}
	}
	return edge.OK(c, map[string]any{"pulls": bodies})
}

func (s pulls) cancel(c *fiber.Ctx) error {
	id, err := volumeID(c, s.store)
	if err != nil {
		return err
	}
	if err := intent.CancelPull(requestOf(c, s.store), id, edge.Param(c, "pull")); err != nil {
		return err
	}
	return edge.OK(c, messageBody{"Download cancelled"})
}
