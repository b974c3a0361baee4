package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path"
	"slices"
	"strings"

	"berth/api/intent"
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
		c.fieldErrors.Add("format", "must be one of %s", strings.Join(v1.Formats(), ", "))
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

// extract extracts the body of a request, an archive of any size, into a folder.
func (s files) extract(c *call) error {
	if err := checkContent(c); err != nil {
		return err
	}
	folder, err := folderQuery(c, v1.DotsInNames)
	if err != nil {
		return err
	}
	c.nameFile(folder)
	format := c.Query("format")
	if format != "" && !slices.Contains(v1.StreamFormats(), format) {
		return errStreamFormat
	}
	var got v1.Extraction
	err = s.onVolume(c, s.permits.streams, func(ctx context.Context, f Files, id string) (err error) {
		got, err = f.Extract(ctx, id, edge.Upload(c.Ctx), v1.Decompression{Destination: folder, Format: format, Encoding: c.Query("encoding")})
		return err
	})
	return c.answer(extractedBody{"Extracted successfully", folder, got.Skipped, got.SkippedTotal}, err)
}

var errStreamFormat = v1.Errorf(v1.InvalidRequest, "format: must be one of %s", strings.Join(v1.StreamFormats(), ", "))

// archive answers with a folder as an archive, which is made while the client receives it.
func (s files) archive(c *call) error {
	folder, err := folderQuery(c, v1.DotsInNames)
	if err != nil {
		return err
	}
	tree := v1.Tree{Folder: folder, Format: cmp.Or(c.Query("format"), "tar.gz"), Ignore: edge.QueryValues(c.Ctx, ignoreName)}
	if !slices.Contains(v1.StreamFormats(), tree.Format) {
		return errStreamFormat
	}
	intent.CheckIgnore(&c.fieldErrors, tree.Ignore)
	if err := c.fieldErrors.Err(); err != nil {
		return err
	}
	var stream v1.ArchiveStream
	var volume string
	leave := func() {}
	err = s.onVolume(c, nil, func(ctx context.Context, f Files, id string) (err error) {
		volume = id
		if leave, err = enter(ctx, c.claim(s.store, id), s.permits.streams); err != nil {
			return err
		}
		if stream, err = f.Archive(ctx, id, tree); err != nil {
			leave()
		}
		return err
	})
	if err != nil {
		return err
	}
	done, err := s.sessions.beginDownload(c, onChangeOf(volume)) // a restore waits for those who read the old tree
	if err != nil {
		leave()
		return errors.Join(err, stream.Close())
	}
	name := path.Base(path.Clean(folder))
	if name == "." {
		name = volume
	}
	edge.SendArchive(c.Ctx, loggedArchive{stream, s.log, volume}, name+"."+tree.Format, func() { done(); leave() })
	return nil
}

// loggedArchive is a v1.ArchiveStream that logs why it is not complete: the answer has begun, and cannot have the reason.
type loggedArchive struct {
	v1.ArchiveStream
	log    *slog.Logger
	volume string
}

// WriteTo implements io.WriterTo.
func (a loggedArchive) WriteTo(w io.Writer) (n int64, err error) {
	n, err = a.ArchiveStream.WriteTo(w)
	var gone *net.OpError // the client disconnected, or its token or the daemon ended
	if err != nil && !errors.As(err, &gone) {
		a.log.Warn("an archive of a folder is not complete", slog.String("volume", a.volume), slog.Any("err", err))
	}
	return n, err
}
