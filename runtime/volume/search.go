package volume

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	v1 "berth/api/v1"
)

// clockInterval is how many entries a search visits between two checks of its
// time limit.
const clockInterval = 256

// Search returns the entries below the folder p whose name contains query, ignoring
// case. A query with * or ? is a pattern that the whole name must match; no other character is
// special. Search stops after Limits.SearchResults results, Limits.SearchEntries entries or
// Limits.SearchTime, and skips folders that it cannot read or that are nested too deeply: the result
// is truncated then. It is sorted by path.
func (f Files) Search(ctx context.Context, id, p, query string) (v1.SearchResult, error) {
	found := v1.SearchResult{Files: []v1.FoundFile{}}
	p, err := parse(p)
	if err != nil {
		return found, err
	}
	match, err := matcher(query)
	if err != nil {
		return found, err
	}
	limits, began, seen := f.m.opt.Limits, time.Now(), 0
	err = f.readVolume(ctx, id, p, func(vol *openVolume) error {
		r, err := openFolder(vol.root, p)
		if err != nil {
			return err
		}
		defer r.close()
		up := strings.TrimPrefix(p+"/", "./")
		w := walker{ctxErr: vol.ctxErr, depth: limits.Depth,
			tooDeep: func() error { found.Truncated = true; return nil },
			failed: func(err error) error {
				if errors.Is(err, fs.ErrPermission) {
					found.Truncated = true
					return nil
				}
				return err
			},
			visit: func(it entry) error {
				if seen++; seen > limits.SearchEntries || seen%clockInterval == 0 && time.Since(began) > limits.SearchTime {
					return errEnough
				}
				e := describe(it.name, it.info)
				if !match(e.Name) {
					return nil
				}
				if len(found.Files) == limits.SearchResults {
					return errEnough
				}
				found.Files = append(found.Files, v1.FoundFile{Path: v1.EscapePath(it.path()), Type: e.Type, Size: e.Size})
				return nil
			}}
		return w.walk(r, up, 0)
	})
	if errors.Is(err, errEnough) {
		found.Truncated = true
	} else if err != nil {
		return v1.SearchResult{}, refuseRead(p, err)
	}
	slices.SortFunc(found.Files, func(a, b v1.FoundFile) int { return strings.Compare(a.Path, b.Path) })
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
	query = strings.NewReplacer(`\`, `\\`, `[`, `\[`).Replace(query) // path.Match has more special characters
	return func(name string) bool {
		ok, _ := path.Match(query, strings.ToLower(name))
		return ok
	}, nil
}
