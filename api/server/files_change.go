package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
	v1 "berth/api/v1"
)

type filesBody struct {
	Files []v1.FileEntry `json:"files"`
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

// largeList is the number of entries above which a list is sent from a file
// instead of memory.
const largeList = 10_000

func (s files) listFiles(c *fiber.Ctx) error {
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
			return ok(c, filesBody{list})
		}
		return spooled(ctx, c, s.Server, id, list)
	})
}

// spooled answers with a large list from a temporary file, so that a slow client
// holds a file descriptor and neither memory nor a list permit.
func spooled(ctx context.Context, c *fiber.Ctx, s *Server, id string, list []v1.FileEntry) error {
	leave, err := s.permits.spools.enter(ctx, id, callerOf(c).TokenID)
	if err != nil {
		return err
	}
	done, err := beginDownload(s, c, onVolumeOf(id))
	if err != nil {
		leave()
		return err
	}
	content := &spool{dir: s.deps.SpoolDir, limit: math.MaxInt64, reserve: func(int64) error { return ctx.Err() }}
	w := bufio.NewWriter(content)
	writeList(w, "files", slices.Values(list))
	err = w.Flush()
	var body io.Reader
	if err == nil {
		body, err = content.reader()
	}
	if err != nil {
		done()
		leave()
		return errors.Join(err, content.Close())
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Context().SetBodyStream(&fileBody{LimitedReader: io.LimitedReader{R: body, N: content.size}, file: content.file,
		done: func() { done(); leave() }}, int(content.size))
	return nil
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
	var body v1.SearchResult
	err = s.onVolume(c, s.permits.walks, func(ctx context.Context, f Files, id string) (err error) {
		body, err = f.Search(ctx, id, path, query)
		return err
	})
	if err != nil {
		return err
	}
	return ok(c, body)
}

func (s files) write(c *fiber.Ctx, path string, content io.Reader) error {
	err := s.onVolume(c, nil, func(ctx context.Context, f Files, id string) error {
		return f.Write(ctx, id, path, content)
	})
	if err != nil {
		return err
	}
	return ok(c, pathBody{"File written successfully", path})
}

// onPath runs an operation on one path and answers with message.
func (s files) onPath(c *fiber.Ctx, path, message string, do func(ctx context.Context, f Files, id string) error) error {
	if err := checkPaths(path); err != nil {
		return err
	}
	if err := s.onVolume(c, nil, do); err != nil {
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
	var faults intent.FieldErrors
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

// move runs an operation from one path to another and answers with message.
func (s files) move(c *fiber.Ctx, l *limiter, message string, do func(f Files) func(ctx context.Context, id, source, destination string) error) error {
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
	err := s.onVolume(c, l, func(ctx context.Context, f Files, id string) error {
		return do(f)(ctx, id, body.Source, body.Destination)
	})
	if err != nil {
		return err
	}
	return ok(c, movedBody{message, body.Source, body.Destination})
}

func (s files) copyFile(c *fiber.Ctx) error {
	return s.move(c, s.permits.walks, "Copied successfully", func(f Files) func(context.Context, string, string, string) error { return f.Copy })
}

func (s files) renameFile(c *fiber.Ctx) error {
	return s.move(c, nil, "Renamed successfully", func(f Files) func(context.Context, string, string, string) error { return f.Rename })
}
