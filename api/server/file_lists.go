package server

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	v1 "berth/api/v1"
)

type filesBody struct {
	Files []v1.FileEntry `json:"files"`
}

// largeList is the number of entries above which a list is counted until it was sent: its client
// may be slow.
const largeList = 10_000

func (s files) list(c *fiber.Ctx) error {
	path, err := folderQuery(c)
	if err != nil {
		return err
	}
	return s.onVolume(c, s.permits.lists, func(ctx context.Context, f Files, id string) error {
		list, err := f.List(ctx, id, path)
		if err != nil {
			return err
		}
		if len(list) <= largeList {
			return edge.OK(c, filesBody{list})
		}
		return s.sendLarge(ctx, c, id, list)
	})
}

func (s files) sendLarge(ctx context.Context, c *fiber.Ctx, id string, list []v1.FileEntry) error {
	leave, err := enter(ctx, callerOf(c), id, s.permits.largeLists)
	if err != nil {
		return err
	}
	end, err := s.sessions.beginDownload(c, onVolumeOf(id))
	if err != nil {
		leave()
		return err
	}
	return edge.SendHeld(c, filesBody{list}, func() { end(); leave() })
}

func (s files) search(c *fiber.Ctx) error {
	path, err := folderQuery(c)
	if err != nil {
		return err
	}
	query := c.Query("query")
	if query == "" {
		return v1.Errorf(v1.InvalidRequest, "query: is required")
	}
	var body v1.SearchResult
	err = s.onVolume(c, s.permits.walks, func(ctx context.Context, f Files, id string) (err error) {
		body, err = f.Search(ctx, id, path, query)
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}
