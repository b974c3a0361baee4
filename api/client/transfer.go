package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	v1 "berth/api/v1"
)

// watchdog cancels a transfer in which nothing is sent or received for a time.
type watchdog struct {
	limit  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// newWatchdog returns a watchdog that runs, and the context that it cancels.
func newWatchdog(ctx context.Context, limit time.Duration) (*watchdog, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{limit: limit, cancel: cancel}
	w.timer = time.AfterFunc(limit, func() {
		cancel(fmt.Errorf("nothing was transferred for %s: %w", limit, context.DeadlineExceeded))
	})
	return w, ctx
}

func (w *watchdog) pause()  { w.timer.Stop() }
func (w *watchdog) resume() { w.timer.Reset(w.limit) }

// end releases the context.
func (w *watchdog) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// transfer sends a request without a limit of its total time.
func (s Files) transfer(request *http.Request) (*http.Response, error) {
	response, err := (&http.Client{Transport: s.c.http.Transport}).Do(request)
	return response, timeoutOr(request.Context(), err)
}

// timeoutOr returns the timeout of a watchdog if it has cancelled ctx, else err.
func timeoutOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return err
}

// Content is the content of a file. The caller closes it.
type Content struct {
	io.ReadCloser
	ETag string // of the file; see UploadOptions
	Size int64  // bytes; -1: unknown
}

// Download opens the content of a file. It may take any time in total: a
// read fails if the daemon sends nothing for the client's timeout, and with io.ErrUnexpectedEOF if
// the content is cut off.
func (s Files) Download(ctx context.Context, volume, path string) (*Content, error) {
	return s.download(ctx, contentPath(volume, path))
}

// ArchiveOptions select what an archive of a folder has.
type ArchiveOptions struct {
	Format string   // tar, tar.gz, tar.zst or zip; empty: tar.gz
	Ignore []string // patterns of paths that are left out, as in .gitignore
}

// Archive opens a folder as an archive, which the daemon makes while it is read. A read fails as with Download if
// the archive is cut off. The Content has no ETag.
func (s Files) Archive(ctx context.Context, volume, folder string, o ArchiveOptions) (*Content, error) {
	q := url.Values{"ignore": o.Ignore}
	for name, value := range map[string]string{"path": folder, "format": o.Format} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return s.download(ctx, volumePath(volume)+"/archive?"+q.Encode())
}

func (s Files) download(ctx context.Context, path string) (*Content, error) {
	dog, ctx := newWatchdog(ctx, s.c.options.Timeout)
	response, err := s.openContent(ctx, path)
	if err != nil {
		dog.end()
		return nil, err
	}
	dog.pause()
	body := response.Body
	read := func(p []byte) (int, error) {
		dog.resume() // the time between two reads does not count
		defer dog.pause()
		n, err := body.Read(p)
		return n, timeoutOr(ctx, err)
	}
	return &Content{&funcBody{read, func() error {
		dog.end()
		return body.Close()
	}}, response.Header.Get("ETag"), response.ContentLength}, nil
}

func (s Files) openContent(ctx context.Context, path string) (*http.Response, error) {
	request, err := s.c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.transfer(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	return nil, cmp.Or(receive(s.c.options, request, response, nil), ErrNotBerth)
}

// UploadOptions apply to one upload.
type UploadOptions struct {
	Size int64 // number of bytes, if it is known; less than 1: it is not

	// IfMatch is the ETag of the file that the upload may replace: if it was changed or deleted since,
	// Upload fails with status 412. IfNoneMatch, if "*", has Upload fail so if there is a file. Each is
	// ignored if it is empty.
	IfMatch, IfNoneMatch string
}

// Upload replaces the content of a file in one step, and creates missing parent
// folders. It returns the ETag of the new file. It reads content to its end and may take any time in
// total: it fails if the daemon accepts nothing for the client's timeout. If the daemon refuses the file
// early, a read of content that is in flight ends after Upload has returned.
func (s Files) Upload(ctx context.Context, volume, path string, content io.Reader, o UploadOptions) (tag string, err error) {
	header := http.Header{}
	setIf(header, "If-Match", o.IfMatch)
	setIf(header, "If-None-Match", o.IfNoneMatch)
	got, err := s.send(ctx, upload{contentPath(volume, path), content, o.Size, header}, nil)
	return got.Get("ETag"), err
}

// ExtractOptions apply to one archive that is sent.
type ExtractOptions struct {
	Size     int64  // number of bytes, if it is known; less than 1: it is not
	Format   string // that it must have: tar, tar.gz, tar.zst or zip; empty: the daemon finds it by content
	Encoding string // of names in a zip that are not UTF-8, as IANA names it; empty: IBM437
}

// Extract sends an archive, which the daemon extracts into a folder while it arrives: all of it, or nothing after an
// error. It reads archive to its end and may take any time in total, as Upload.
func (s Files) Extract(ctx context.Context, volume, folder string, archive io.Reader, o ExtractOptions) (got v1.Extraction, err error) {
	var answer struct {
		Skipped []v1.Skipped `json:"skipped"`
		Total   int          `json:"skipped_total"`
	}
	path := volumePath(volume) + "/archive" + query("path", folder, "format", o.Format, "encoding", o.Encoding)
	_, err = s.send(ctx, upload{path, archive, o.Size, nil}, &answer)
	return v1.Extraction{Skipped: answer.Skipped, SkippedTotal: answer.Total}, err
}

// upload is a PUT of content.
type upload struct {
	path    string
	content io.Reader
	size    int64 // less than 1: unknown
	header  http.Header
}

// send sends an upload, decodes the answer into out, and returns its headers.
func (s Files) send(ctx context.Context, u upload, out any) (http.Header, error) {
	dog, ctx := newWatchdog(ctx, s.c.options.Timeout)
	defer dog.end()
	request, err := s.c.request(ctx, http.MethodPut, u.path, nil)
	if err != nil {
		return nil, err
	}
	var failed atomic.Pointer[error] // of content
	read := func(p []byte) (int, error) {
		dog.pause() // the time that content takes does not count
		defer dog.resume()
		n, err := u.content.Read(p)
		if err != nil && !errors.Is(err, io.EOF) {
			failed.Store(&err)
		}
		return n, err
	}
	request.Body, request.ContentLength = &funcBody{read, func() error { return nil }}, max(0, u.size)
	request.Header.Set("Content-Type", "application/octet-stream")
	maps.Copy(request.Header, u.header)
	response, err := s.transfer(request)
	if err == nil {
		defer response.Body.Close()
		err = receive(s.c.options, request, response, out)
	}
	if cause := failed.Load(); cause != nil {
		err = *cause // the daemon has discarded what was sent
	}
	if err != nil {
		return nil, err
	}
	return response.Header, nil
}

// setIf sets a header unless its value is empty.
func setIf(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}

// funcBody is a body made of two functions.
type funcBody struct {
	read  func(p []byte) (int, error)
	close func() error
}

func (b *funcBody) Read(p []byte) (int, error) { return b.read(p) }
func (b *funcBody) Close() error               { return b.close() }
