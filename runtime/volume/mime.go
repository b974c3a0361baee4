package volume

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"berth/runtime/volume/archive"
)

// mimeBytes is how many bytes of a file its media type is found by.
const mimeBytes = 512

// Types returns the media types of files, by their first bytes, in the order of paths. The type is empty if the file
// cannot be read, is denied or no file, and behind Limits.MimeFiles files or Limits.MimeTime.
func (m *Manager) Types(ctx context.Context, id string, paths []string) ([]string, error) {
	types, limits, began := make([]string, len(paths)), m.opt.Limits, time.Now()
	err := m.read(ctx, id, root, func(vol *Volume) error {
		for i, p := range paths[:min(len(paths), limits.MimeFiles)] {
			if err := vol.ctxErr(); err != nil {
				return err
			}
			if time.Since(began) > limits.MimeTime {
				return nil
			}
			types[i] = vol.mimeOf(p)
		}
		return nil
	})
	return types, err
}

// mimeOf returns the media type of the file at p, which a client named; empty: it is unknown.
func (vol *Volume) mimeOf(p string) string {
	p, err := parseEntry(p)
	if err != nil {
		return ""
	}
	f, err := vol.openFile(p, os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, mimeBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	if known := archive.TypeOf(head[:n]); known != "" {
		return known
	}
	return http.DetectContentType(head[:n])
}
