package volume

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

var errEnough = errors.New("enough found")

// Search gives what is below the folder p and has query in its name, in any
// case; with * or ? in it query is a pattern of the whole name. It ends at
// Limits.Found results, sorted by path.
func (f Files) Search(ctx context.Context, id, p, query string) ([]v1.FoundFile, error) {
	p, err := clean(p)
	if err != nil {
		return nil, err
	}
	match, err := matcher(query)
	if err != nil {
		return nil, err
	}
	found := []v1.FoundFile{}
	err = f.on(ctx, id, p, func(t *tree) error {
		r, err := openDirfd(t.Root, p)
		if err != nil {
			return err
		}
		defer r.close()
		up := strings.TrimPrefix(p+"/", "./")
		w := walker{end: t.ctx, depth: f.m.opt.Limits.Depth, hidden: t.hidden(p),
			deep: func(item) error { return nil },
			visit: func(it item) error {
				if !match(it.name) {
					return nil
				}
				e := entry(it.name, it.info)
				found = append(found, v1.FoundFile{Path: up + it.path(), Type: e.Type, Size: e.Size})
				if len(found) == f.m.opt.Limits.Found {
					return errEnough
				}
				return nil
			}}
		return w.walk(r, "", 0)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, refuseRead(p, err)
	}
	slices.SortFunc(found, func(a, b v1.FoundFile) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

func matcher(query string) (func(name string) bool, error) {
	query = strings.ToLower(query)
	switch {
	case query == "":
		return nil, v1.Errorf(v1.InvalidRequest, "query: is required")
	case len(query) > v1.MaxComponent:
		return nil, v1.Errorf(v1.InvalidRequest, "query: is longer than %d bytes", v1.MaxComponent)
	case !strings.ContainsAny(query, "*?"):
		return func(name string) bool { return strings.Contains(strings.ToLower(name), query) }, nil
	}
	if _, err := path.Match(query, ""); err != nil {
		return nil, v1.Errorf(v1.InvalidRequest, "query: is not a pattern")
	}
	return func(name string) bool {
		ok, _ := path.Match(query, strings.ToLower(name))
		return ok
	}, nil
}
