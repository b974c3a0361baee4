package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
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

// Download opens the content of a file, which the caller closes. It may take any time in total: a
// read fails if the daemon sends nothing for the client's timeout, and with io.ErrUnexpectedEOF if
// the content is cut off.
func (s Files) Download(ctx context.Context, volume, path string) (io.ReadCloser, error) {
	return s.download(ctx, contentPath(volume, path))
}

func (s Files) download(ctx context.Context, path string) (io.ReadCloser, error) {
	dog, ctx := newWatchdog(ctx, s.c.options.Timeout)
	body, err := s.openContent(ctx, path)
	if err != nil {
		dog.end()
		return nil, err
	}
	dog.pause()
	read := func(p []byte) (int, error) {
		dog.resume() // the time between two reads does not count
		defer dog.pause()
		n, err := body.Read(p)
		return n, timeoutOr(ctx, err)
	}
	return &funcBody{read, func() error {
		dog.end()
		return body.Close()
	}}, nil
}

func (s Files) openContent(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := s.c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.transfer(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	return nil, cmp.Or(receive(s.c.options, request, response, nil), ErrNotBerth)
}

// Upload replaces the content of a file in one step, and creates missing parent
// folders. It reads content to its end and may take any time in total: it fails if
// the daemon accepts nothing for the client's timeout. size is the number of bytes;
// -1 is unknown. If the daemon refuses the file early, a read of content that is in flight
// ends after Upload has returned.
func (s Files) Upload(ctx context.Context, volume, path string, content io.Reader, size int64) error {
	dog, ctx := newWatchdog(ctx, s.c.options.Timeout)
	defer dog.end()
	request, err := s.c.request(ctx, http.MethodPut, contentPath(volume, path), nil)
	if err != nil {
		return err
	}
	var failed atomic.Pointer[error] // of content
	read := func(p []byte) (int, error) {
		dog.pause() // the time that content takes does not count
		defer dog.resume()
		n, err := content.Read(p)
		if err != nil && !errors.Is(err, io.EOF) {
			failed.Store(&err)
		}
		return n, err
	}
	request.Body, request.ContentLength = &funcBody{read, func() error { return nil }}, size
	if size == 0 {
		request.Body = http.NoBody
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := s.transfer(request)
	if err == nil {
		defer response.Body.Close()
		err = receive(s.c.options, request, response, nil)
	}
	if cause := failed.Load(); cause != nil {
		return *cause // the daemon has discarded what was sent
	}
	return err
}

// funcBody is a body made of two functions.
type funcBody struct {
	read  func(p []byte) (int, error)
	close func() error
}

func (b *funcBody) Read(p []byte) (int, error) { return b.read(p) }
func (b *funcBody) Close() error               { return b.close() }
