package server

import (
	"context"

	"berth/api/server/edge"
	v1 "berth/api/v1"
)

type filesBody struct {
	Files []v1.FileEntry `json:"files"`
}

// largeList is the number of entries above which a list is counted until it was sent: its client
// may be slow.
const largeList = 10_000

func (s files) list(c *call) error {
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
			return edge.OK(c.Ctx, filesBody{list})
		}
		return s.sendLarge(ctx, c, id, list)
	})
}

func (s files) sendLarge(ctx context.Context, c *call, id string, list []v1.FileEntry) error {
	leave, err := enter(ctx, c.caller, id, s.permits.largeLists)
	if err != nil {
		return err
	}
	end, err := s.sessions.beginDownload(c, onVolumeOf(id))
	if err != nil {
		leave()
		return err
	}
	return edge.SendHeld(c.Ctx, filesBody{list}, func() { end(); leave() })
}

func (s files) search(c *call) (found v1.SearchResult, err error) {
	path, err := folderQuery(c)
	if err != nil {
		return found, err
	}
	query := c.Query("query")
	if query == "" {
		return found, v1.Errorf(v1.InvalidRequest, "query: is required")
	}
	err = s.onVolume(c, s.permits.walks, func(ctx context.Context, f Files, id string) (err error) {
		found, err = f.Search(ctx, id, path, query)
		return err
	})
	return found, err
}
