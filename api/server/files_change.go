package server

import (
	"context"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
	v1 "berth/api/v1"
)

type filesBody struct {
	Files []v1.FileEntry `json:"files"`
}

type foundBody struct {
	Files []v1.FoundFile `json:"files"`
}

type pathBody struct {
	Message string `json:"message"`
	Path    string `json:"path"`
}

type movedBody struct {
	Message     string `json:"message"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// largeList is how many files make a list large. One large list of a volume is
// kept in memory at once, until its client has it.
const largeList = 10_000

func (s files) listFiles(c *fiber.Ctx) error {
	path, err := folderQuery(c)
	if err != nil {
		return err
	}
	return s.onVolume(c, func(ctx context.Context, f Files, id string) error {
		leave := s.lists.enter(id)
		defer func() { leave() }()
		list, err := f.List(ctx, id, path)
		if err != nil {
			return err
		}
		if len(list) <= largeList {
			return ok(c, filesBody{list})
		}
		streamed(c, "files", slices.Values(list), leave)
		leave = func() {}
		return nil
	})
}

func (s files) searchFiles(c *fiber.Ctx) error {
	path, err := folderQuery(c)
	if err != nil {
		return err
	}
	query := c.Query("query")
	if query == "" {
		return v1.Errorf(v1.InvalidRequest, "query: is required")
	}
	var body foundBody
	err = s.onVolume(c, func(ctx context.Context, f Files, id string) (err error) {
		body.Files, err = f.Search(ctx, id, path, query)
		return err
	})
	if err != nil {
		return err
	}
	return ok(c, body)
}

// largeWrites is how many large JSON bodies are unpacked at once.
const largeWrites = 2

// writeFile is the handler of a file that comes as JSON. Its body may be larger
// than any other, and takes several times its size in memory: so of the large
// ones only one a volume is read at once, and only a few are unpacked.
func (s files) writeFile() fiber.Handler {
	large := make(chan struct{}, largeWrites)
	return func(c *fiber.Ctx) error {
		config := s.settings.Current()
		limit := int64(config.Storage.MaxFileSize)
		sent := largeBody{c: c, small: int64(config.Server.BodyLimit), limit: 2*limit + int64(config.Server.BodyLimit)}
		leave := func() {}
		defer func() { leave() }()
		raw, err := sent.read(func() {
			id, _ := s.volumeID(c) // all that are not found share a queue
			leave = s.writes.enter(id)
		})
		if err != nil {
			return err
		}
		if len(raw) > int(config.Server.BodyLimit) {
			large <- struct{}{}
			defer func() { <-large }()
		}
		var body struct {
			Path    string `json:"path" wire:"required"`
			Content string `json:"content" wire:"required"`
		}
		var f intent.Faults
		unmarshal(raw, &body, &f)
		if err := f.Err(); err != nil {
			return err
		}
		if err := v1.CheckPath(body.Path); err != nil {
			return err
		}
		if int64(len(body.Content)) > limit {
			return errTooLarge
		}
		return s.write(c, body.Path, strings.NewReader(body.Content))
	}
}

func (s files) write(c *fiber.Ctx, path string, content io.Reader) error {
	err := s.onVolume(c, func(ctx context.Context, f Files, id string) error {
		return f.Write(ctx, id, path, content)
	})
	if err != nil {
		return err
	}
	return ok(c, pathBody{"File written successfully", path})
}

// onPath answers an operation on one path that comes as JSON.
func (s files) onPath(c *fiber.Ctx, path, message string, do func(ctx context.Context, f Files, id string) error) error {
	if err := checkPaths(path); err != nil {
		return err
	}
	if err := s.onVolume(c, do); err != nil {
		return err
	}
	return ok(c, pathBody{message, path})
}

func (s files) makeFolder(c *fiber.Ctx) error {
	var body struct {
		Path string `json:"path" wire:"required"`
	}
	if err := s.decodeStrict(c, &body); err != nil {
		return err
	}
	return s.onPath(c, body.Path, "Folder created successfully", func(ctx context.Context, f Files, id string) error {
		return f.Mkdir(ctx, id, body.Path)
	})
}

func (s files) deleteFile(c *fiber.Ctx) error {
	path := c.Query("path")
	return s.onPath(c, path, "Deleted successfully", func(ctx context.Context, f Files, id string) error {
		return f.Delete(ctx, id, path)
	})
}

func (s files) chmodFile(c *fiber.Ctx) error {
	var body struct {
		Path string `json:"path" wire:"required"`
		Mode string `json:"mode" wire:"required"`
	}
	var faults intent.Faults
	if err := s.decode(c, &body, &faults); err != nil {
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

// move answers an operation from one path to another.
func (s files) move(c *fiber.Ctx, message string, do func(f Files) func(ctx context.Context, id, source, destination string) error) error {
	var body struct {
		Source      string `json:"source" wire:"required"`
		Destination string `json:"destination" wire:"required"`
	}
	if err := s.decodeStrict(c, &body); err != nil {
		return err
	}
	if err := checkPaths(body.Source, body.Destination); err != nil {
		return err
	}
	err := s.onVolume(c, func(ctx context.Context, f Files, id string) error {
		return do(f)(ctx, id, body.Source, body.Destination)
	})
	if err != nil {
		return err
	}
	return ok(c, movedBody{message, body.Source, body.Destination})
}

func (s files) copyFile(c *fiber.Ctx) error {
	return s.move(c, "Copied successfully", func(f Files) func(context.Context, string, string, string) error { return f.Copy })
}

func (s files) renameFile(c *fiber.Ctx) error {
	return s.move(c, "Renamed successfully", func(f Files) func(context.Context, string, string, string) error { return f.Rename })
}
