package server

import (
	"context"
	"io/fs"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"berth/api/limit"
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
func (s files) onPath(c *fiber.Ctx, path, message string, do func(ctx context.Context, f Files, id string) error) error {
	nameFile(c, path)
	if err := checkPaths(path); err != nil {
		return err
	}
	if err := s.onVolume(c, nil, do); err != nil {
		return err
	}
	return edge.OK(c, pathBody{message, path})
}

func (s files) makeFolder(c *fiber.Ctx) error {
	var body struct {
		Path string `json:"path" api:"required"`
	}
	if err := s.decoder.decodeStrict(c, &body); err != nil {
		return err
	}
	return s.onPath(c, body.Path, "Folder created successfully", func(ctx context.Context, f Files, id string) error {
		return f.Mkdir(ctx, id, body.Path)
	})
}

func (s files) delete(c *fiber.Ctx) error {
	path, err := pathQuery(c)
	if err != nil {
		nameFile(c, path)
		return err
	}
	return s.onPath(c, path, "Deleted successfully", func(ctx context.Context, f Files, id string) error {
		return f.Delete(ctx, id, path)
	})
}

func (s files) chmod(c *fiber.Ctx) error {
	var body struct {
		Path string `json:"path" api:"required"`
		Mode string `json:"mode" api:"required"`
	}
	var faults v1.FieldErrors
	if err := s.decoder.decode(c, &body, &faults); err != nil {
		return err
	}
	mode, err := strconv.ParseUint(body.Mode, 8, 32)
	if (err != nil || mode > 0o777) && !faults.Any() {
		faults.Add("mode", "must be an octal number up to 0777, as a string")
	}
	if err := faults.Err(); err != nil {
		return err
	}
	return s.onPath(c, body.Path, "Mode changed successfully", func(ctx context.Context, f Files, id string) error {
		return f.Chmod(ctx, id, body.Path, fs.FileMode(mode))
	})
}

// move runs an operation from one path to another and answers with message.
func (s files) move(c *fiber.Ctx, l *limit.Slots, message string, do func(f Files) func(ctx context.Context, id, source, destination string) error) error {
	var body struct {
		Source      string `json:"source" api:"required"`
		Destination string `json:"destination" api:"required"`
	}
	if err := s.decoder.decodeStrict(c, &body); err != nil {
		return err
	}
	nameFile(c, body.Source, body.Destination)
	if err := checkPaths(body.Source, body.Destination); err != nil {
		return err
	}
	err := s.onVolume(c, l, func(ctx context.Context, f Files, id string) error {
		return do(f)(ctx, id, body.Source, body.Destination)
	})
	if err != nil {
		return err
	}
	return edge.OK(c, movedBody{message, body.Source, body.Destination})
}

func (s files) copy(c *fiber.Ctx) error {
	return s.move(c, s.permits.walks, "Copied successfully", func(f Files) func(context.Context, string, string, string) error { return f.Copy })
}

func (s files) rename(c *fiber.Ctx) error {
	return s.move(c, nil, "Renamed successfully", func(f Files) func(context.Context, string, string, string) error { return f.Rename })
}
