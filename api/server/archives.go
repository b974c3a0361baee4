package server

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	v1 "berth/api/v1"
)

type archiveBody struct {
	Message     string `json:"message"`
	ArchivePath string `json:"archive_path"`
	Size        int64  `json:"size"`
	Skipped     int    `json:"skipped"`
}

type extractedBody struct {
	Message     string `json:"message"`
	Destination string `json:"destination"`
}

func (s files) compress(c *fiber.Ctx) error {
	var body struct {
		Format string   `json:"format"`
		Output string   `json:"output_name" api:"required"`
		Path   *string  `json:"path"`
		Paths  []string `json:"paths"`
	}
	var faults v1.FieldErrors
	if err := s.decoder.decode(c, &body, &faults); err != nil {
		return err
	}
	if body.Format != "" && !slices.Contains(v1.Formats(), body.Format) {
		faults.Add("format", "must be one of %s", strings.Join(v1.Formats(), ", "))
	}
	if err := faults.Err(); err != nil {
		return err
	}
	folder := "."
	if body.Path != nil {
		folder = *body.Path
	}
	nameFile(c, path.Join(folder, body.Output))
	if err := checkPaths(append([]string{folder, body.Output}, body.Paths...)...); err != nil {
		return err
	}
	var archive v1.Archive
	err := s.onVolume(c, s.permits.archives, func(ctx context.Context, f Files, id string) (err error) {
		archive, err = f.Compress(ctx, id, v1.Compression{Format: body.Format, Output: body.Output, Folder: folder, Paths: body.Paths})
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, archiveBody{"Compressed successfully", archive.Path, archive.Size, archive.Skipped})
}

func (s files) decompress(c *fiber.Ctx) error {
	var body struct {
		ArchivePath string `json:"archive_path" api:"required"`
		Destination string `json:"destination" api:"required"`
	}
	if err := s.decoder.decodeStrict(c, &body); err != nil {
		return err
	}
	nameFile(c, body.ArchivePath, body.Destination)
	if err := checkPaths(body.ArchivePath, body.Destination); err != nil {
		return err
	}
	err := s.onVolume(c, s.permits.archives, func(ctx context.Context, f Files, id string) error {
		return f.Decompress(ctx, id, body.ArchivePath, body.Destination)
	})
	if err != nil {
		return err
	}
	return edge.OK(c, extractedBody{"Decompressed successfully", body.Destination})
}
