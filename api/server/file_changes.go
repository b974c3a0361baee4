package server

import (
	"context"
	"io/fs"
	"strconv"

	"berth/api/server/edge"
	v1 "berth/api/v1"
)

type pathBody struct {
	Message string `json:"message"`
	Path    string `json:"path"`
}

type movedBody struct {
	Message     string `json:"message"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// onPath runs an operation on one path and answers with message.
func (s files) onPath(c *call, rule v1.PathRule, path, message string,
	do func(ctx context.Context, f Files, id string) error) (pathBody, error) {
	c.nameFile(path)
	if err := checkPaths(rule, path); err != nil {
		return pathBody{}, err
	}
	return pathBody{message, path}, s.onVolume(c, nil, do)
}

type pathRequest struct {
	Path string `json:"path" api:"required"`
}

func (s files) makeFolder(c *call, r pathRequest) (pathBody, error) {
	return s.onPath(c, v1.NoDots, r.Path, "Folder created successfully", func(ctx context.Context, f Files, id string) error {
		return f.Mkdir(ctx, id, r.Path)
	})
}

func (s files) delete(c *call) (pathBody, error) {
	path, err := pathQuery(c)
	if err != nil {
		c.nameFile(path)
		return pathBody{}, err
	}
	return s.onPath(c, v1.DotsInNames, path, "Deleted successfully", func(ctx context.Context, f Files, id string) error {
		return f.Delete(ctx, id, path, edge.Preconditions(c.Ctx))
	})
}

type chmodRequest struct {
	Path string `json:"path" api:"required"`
	Mode string `json:"mode" api:"required"`

	mode fs.FileMode // that checkMode has found in Mode
}

func (s files) checkMode(c *call, r *chmodRequest) error {
	mode, err := strconv.ParseUint(r.Mode, 8, 32)
	if (err != nil || mode > 0o777) && !c.fieldErrors.Any() {
		c.fieldErrors.Add("mode", "must be an octal number up to 0777, as a string")
	}
	r.mode = fs.FileMode(mode)
	return nil
}

func (s files) chmod(c *call, r chmodRequest) (pathBody, error) {
	return s.onPath(c, v1.DotsInNames, r.Path, "Mode changed successfully", func(ctx context.Context, f Files, id string) error {
		return f.Chmod(ctx, id, r.Path, r.mode)
	})
}

type moveRequest struct {
	Source      string `json:"source" api:"required"`
	Destination string `json:"destination" api:"required"`
}

// check checks the paths, which are those of the audit entry.
func (r moveRequest) check(c *call, rule v1.PathRule) error {
	c.nameFile(r.Source, r.Destination)
	return checkPaths(rule, r.Source, r.Destination)
}

func (s files) copy(c *call, r moveRequest) (movedBody, error) {
	if err := r.check(c, v1.NoDots); err != nil {
		return movedBody{}, err
	}
	return movedBody{"Copied successfully", r.Source, r.Destination},
		s.onVolume(c, s.permits.walks, func(ctx context.Context, f Files, id string) error {
			return f.Copy(ctx, id, r.Source, r.Destination)
		})
}

func (s files) rename(c *call, r moveRequest) (movedBody, error) {
	if err := r.check(c, v1.DotsInNames); err != nil {
		return movedBody{}, err
	}
	return movedBody{"Renamed successfully", r.Source, r.Destination}, s.onVolume(c, nil, func(ctx context.Context, f Files, id string) error {
		return f.Rename(ctx, id, r.Source, r.Destination)
	})
}
