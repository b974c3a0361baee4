package server

import (
	"context"
	"path"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

type archiveBody struct {
	Message     string `json:"message"`
	ArchivePath string `json:"archive_path"`
	Size        int64  `json:"size"`
	Skipped     int    `json:"skipped"`
}

type extractedBody struct {
	Message      string       `json:"message"`
	Destination  string       `json:"destination"`
	Skipped      []v1.Skipped `json:"skipped,omitempty"`
	SkippedTotal int          `json:"skipped_total,omitempty"`
}

type compressRequest struct {
	Format string   `json:"format"`
	Output string   `json:"output_name" api:"required"`
	Path   *string  `json:"path"`
	Paths  []string `json:"paths"`
}

func (s files) checkCompress(c *call, r *compressRequest) error {
	if r.Format != "" && !slices.Contains(v1.Formats(), r.Format) {
		c.faults.Add("format", "must be one of %s", strings.Join(v1.Formats(), ", "))
	}
	return nil
}

func (s files) compress(c *call, r compressRequest) (archiveBody, error) {
	folder := "."
	if r.Path != nil {
		folder = *r.Path
	}
	c.nameFile(path.Join(folder, r.Output))
	if err := checkPaths(v1.NoDots, append([]string{folder, r.Output}, r.Paths...)...); err != nil {
		return archiveBody{}, err
	}
	var archive v1.Archive
	err := s.onVolume(c, s.permits.archives, func(ctx context.Context, f Files, id string) (err error) {
		archive, err = f.Compress(ctx, id, v1.Compression{Format: r.Format, Output: r.Output, Folder: folder, Paths: r.Paths})
		return err
	})
	return archiveBody{"Compressed successfully", archive.Path, archive.Size, archive.Skipped}, err
}

type decompressRequest struct {
	ArchivePath string `json:"archive_path" api:"required"`
	Destination string `json:"destination" api:"required"`
	Encoding    string `json:"encoding"`
}

func (s files) decompress(c *call, r decompressRequest) (extractedBody, error) {
	c.nameFile(r.ArchivePath, r.Destination)
	if err := checkPaths(v1.NoDots, r.ArchivePath, r.Destination); err != nil {
		return extractedBody{}, err
	}
	var got v1.Extraction
	err := s.onVolume(c, s.permits.archives, func(ctx context.Context, f Files, id string) (err error) {
		got, err = f.Decompress(ctx, id, v1.Decompression{Archive: r.ArchivePath, Destination: r.Destination, Encoding: r.Encoding})
		return err
	})
	return extractedBody{"Decompressed successfully", r.Destination, got.Skipped, got.SkippedTotal}, err
}
