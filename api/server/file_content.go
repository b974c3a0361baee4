package server

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	v1 "berth/api/v1"
)

// errLargeFile is the refusal of a file that does not fit into a JSON body.
var errLargeFile = v1.Errorf(edge.ErrTooLarge.Code,
	"Request body is too large: send a large file with PUT /volumes/<volume_id>/files/content?path=")

// write writes a file whose content comes in a JSON body.
func (s files) write(c *call) error {
	var body struct {
		Path    string `json:"path" api:"required"`
		Content string `json:"content" api:"required"`
	}
	config := s.settings.Current()
	raw, err := s.bodies.Read(c.Ctx, int64(config.Storage.MaxFileSize))
	if errors.Is(err, edge.ErrTooLarge) {
		return errLargeFile
	}
	if err != nil {
		return err
	}
	var f v1.FieldErrors
	s.bodies.Unmarshal(raw, &body, &f)
	if err := f.Err(); err != nil {
		return err
	}
	if err := checkPaths(v1.NoDots, body.Path); err != nil {
		return err
	}
	return s.put(c, body.Path, strings.NewReader(body.Content))
}

// upload writes the body of a request, of any size, to a file in constant memory.
func (s files) upload(c *call) error {
	if err := checkContent(c); err != nil {
		return err
	}
	name, err := pathQuery(c)
	if err != nil {
		return err
	}
	if err := checkNewFile(name); err != nil {
		return err
	}
	return s.put(c, name, edge.Upload(c.Ctx))
}

// checkContent refuses a request whose body is not a whole content as it is.
func checkContent(c *call) error {
	if c.Get(fiber.HeaderContentEncoding) != "" {
		return edge.ErrMediaType
	}
	if c.Get(fiber.HeaderContentRange) != "" { // RFC 9110: a server that ignored it would truncate the file
		return v1.Errorf(v1.InvalidRequest, "Content-Range: must be absent: a file is uploaded whole")
	}
	return edge.CheckNoForm(c.Ctx)
}

// put replaces a file by content, if the preconditions of the request hold.
func (s files) put(c *call, path string, content io.Reader) error {
	c.nameFile(path)
	err := s.onVolume(c, nil, func(ctx context.Context, f Files, id string) error {
		written, err := f.Write(ctx, id, path, content, edge.Preconditions(c.Ctx))
		if err == nil {
			c.Set(fiber.HeaderETag, v1.FileTag(written))
		}
		return err
	})
	return c.answer(pathBody{"File written successfully", path}, err)
}

// download answers with a file, or with the part that Range selects.
func (s files) download(c *call) error {
	name, err := pathQuery(c)
	if err != nil {
		return err
	}
	var file *os.File
	var volume string
	err = s.onVolume(c, nil, func(ctx context.Context, f Files, id string) (err error) {
		volume = id
		file, err = f.Open(ctx, id, name)
		return err
	})
	if err != nil {
		return err
	}
	done, err := s.sessions.beginDownload(c, onVolumeOf(volume))
	if err != nil {
		file.Close()
		return err
	}
	return edge.SendFile(c.Ctx, file, edge.Download{Name: path.Base(name)}, done)
}
