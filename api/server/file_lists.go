package server

import (
	"context"

	v1 "berth/api/v1"
)

type filesBody struct {
	Files []v1.FileEntry `json:"files"`
}

func (s files) list(c *call) error {
	path, err := folderQuery(c, v1.NoDots)
	if err != nil {
		return err
	}
	return s.onVolume(c, s.permits.lists, func(ctx context.Context, f Files, id string) error {
		list, err := f.List(ctx, id, path)
		if err != nil {
			return err
		}
		return c.answer(filesBody{list}, nil) // in the permit: the list and its JSON are large
	})
}

func (s files) search(c *call) (found v1.SearchResult, err error) {
	path, err := folderQuery(c, v1.DotsInNames)
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
