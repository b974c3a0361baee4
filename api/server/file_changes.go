package server

import (
	"context"
	"io/fs"
	"strconv"

	"berth/api/limit"
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
func (s files) onPath(c *call, rule v1.PathRule, path, message string, do func(ctx context.Context, f Files, id string) error) (pathBody, error) {
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
		return f.Delete(ctx, id, path)
	})
}

type chmodRequest struct {
	Path string `json:"path" api:"required"`
	Mode string `json:"mode" api:"required"`
}

func (r chmodRequest) mode() (fs.FileMode, bool) {
	mode, err := strconv.ParseUint(r.Mode, 8, 32)
	return fs.FileMode(mode), err == nil && mode <= 0o777
}

func (s files) checkMode(c *call, r *chmodRequest) error {
	if _, valid := r.mode(); !valid && !c.faults.Any() {
		c.faults.Add("mode", "must be an octal number up to 0777, as a string")
	}
	return nil
}

func (s files) chmod(c *call, r chmodRequest) (pathBody, error) {
	mode, _ := r.mode() // checkMode found no error
	return s.onPath(c, v1.DotsInNames, r.Path, "Mode changed successfully", func(ctx context.Context, f Files, id string) error {
		return f.Chmod(ctx, id, r.Path, mode)
	})
}

type moveRequest struct {
	Source      string `json:"source" api:"required"`
	Destination string `json:"destination" api:"required"`
}

// move runs an operation from one path to another and answers with message.
func (s files) move(c *call, rule v1.PathRule, r moveRequest, l *limit.Slots, message string, do func(f Files) func(ctx context.Context, id, source, destination string) error) (movedBody, error) {
	c.nameFile(r.Source, r.Destination)
	if err := checkPaths(rule, r.Source, r.Destination); err != nil {
		return movedBody{}, err
	}
	return movedBody{message, r.Source, r.Destination}, s.onVolume(c, l, func(ctx context.Context, f Files, id string) error {
		return do(f)(ctx, id, r.Source, r.Destination)
	})
}

func (s files) copy(c *call, r moveRequest) (movedBody, error) {
	return s.move(c, v1.NoDots, r, s.permits.walks, "Copied successfully", func(f Files) func(context.Context, string, string, string) error { return f.Copy })
}

func (s files) rename(c *call, r moveRequest) (movedBody, error) {
	return s.move(c, v1.DotsInNames, r, nil, "Renamed successfully", func(f Files) func(context.Context, string, string, string) error { return f.Rename })
}
