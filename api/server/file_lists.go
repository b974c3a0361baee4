package server

import (
	"context"
	"path"

	"berth/api/server/edge"
	v1 "berth/api/v1"
)

type filesBody struct {
	Files []v1.FileEntry `json:"files"`
}

func (s files) list(c *call) error {
	folder, err := folderQuery(c, v1.NoDots)
	if err != nil {
		return err
	}
	mime, err := edge.QueryBool(c.Ctx, "mime")
	if err != nil {
		return err
	}
	return s.onVolume(c, s.permits.lists, func(ctx context.Context, f Files, id string) error {
		list, err := f.List(ctx, id, folder)
		if err == nil && mime {
			err = addTypes(ctx, f, id, list, func(e *v1.FileEntry) (string, *string) {
				if e.Type != v1.TypeFile || e.Symlink {
					return "", nil
				}
				return path.Join(folder, e.Name), &e.Mime
			})
		}
		if err != nil {
			return err
		}
		return c.answer(filesBody{list}, nil) // in the permit: the list and its JSON are large
	})
}

// addTypes adds media types to the entries of a list. file returns the path of one and where its type is stored; nil:
// it has none.
func addTypes[E any](ctx context.Context, f Files, volume string, list []E, file func(*E) (string, *string)) error {
	var paths []string
	var stored []*string
	for i := range list {
		if p, to := file(&list[i]); to != nil {
			paths, stored = append(paths, p), append(stored, to)
		}
	}
	types, err := f.Types(ctx, volume, paths)
	for i, one := range types {
		*stored[i] = one
	}
	return err
}

func (s files) search(c *call) (found v1.SearchResult, err error) {
	folder, err := folderQuery(c, v1.DotsInNames)
	if err != nil {
		return found, err
	}
	mime, err := edge.QueryBool(c.Ctx, "mime")
	if err != nil {
		return found, err
	}
	query := c.Query("query")
	if query == "" {
		return found, v1.Errorf(v1.InvalidRequest, "query: is required")
	}
	err = s.onVolume(c, s.permits.walks, func(ctx context.Context, f Files, id string) (err error) {
		if found, err = f.Search(ctx, id, folder, query); err != nil || !mime {
			return err
		}
		return addTypes(ctx, f, id, found.Files, func(e *v1.FoundFile) (string, *string) {
			if e.Type != v1.TypeFile {
				return "", nil
			}
			return e.Path, &e.Mime
		})
	})
	return found, err
}
