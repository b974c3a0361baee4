package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// files returns a client of a daemon that serves one request with handler.
func files(t *testing.T, handler http.HandlerFunc) Files {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(Options{URL: server.URL, Timeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c.Files()
}

// TestDownloadSlowConsumer takes longer than the timeout between two reads.
func TestDownloadSlowConsumer(t *testing.T) {
	f := files(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ab") })
	content, err := f.Download(t.Context(), "v", "a")
	require.NoError(t, err)
	defer content.Close()
	late := time.NewTimer(1500 * time.Millisecond)
	<-late.C
	got, err := io.ReadAll(content)
	require.NoError(t, err)
	require.Equal(t, "ab", string(got))
}

func TestDownloadFailures(t *testing.T) {
	f := files(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("path") {
		case "missing":
			w.Header().Set("X-Error-Code", string(v1.PathNotFound))
			http.Error(w, `{"error":"Path not found: missing"}`, http.StatusNotFound)
			return
		case "short":
			w.Header().Set("Content-Length", "10")
		}
		_, _ = io.WriteString(w, "ab")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Query().Get("path") == "stalled" {
			<-r.Context().Done()
		}
	})
	_, err := f.Download(t.Context(), "v", "missing")
	require.ErrorIs(t, err, &v1.Error{Code: v1.PathNotFound})
	for path, want := range map[string]error{"short": io.ErrUnexpectedEOF, "stalled": context.DeadlineExceeded} {
		content, err := f.Download(t.Context(), "v", path)
		require.NoError(t, err)
		_, err = io.ReadAll(content)
		require.ErrorIs(t, err, want, path)
		require.NoError(t, content.Close())
	}
}

func TestUploadFailures(t *testing.T) {
	over := make(chan struct{})
	f := files(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("path") == "stalled" {
			<-over // an HTTP server does not detect a closed connection behind an unread body
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		http.Error(w, `{"error":"Volume size limit exceeded"}`, http.StatusRequestEntityTooLarge)
	})
	defer close(over)
	upload := func(path string, content io.Reader, size int64) error {
		_, err := f.Upload(t.Context(), "v", path, content, UploadOptions{Size: size})
		return err
	}
	endless := io.LimitReader(zeros{}, 1<<40)
	require.ErrorIs(t, upload("stalled", endless, -1), context.DeadlineExceeded)
	require.EqualError(t, upload("a", strings.NewReader("x"), 1), "Volume size limit exceeded")
	broken := errors.New("the disk is broken")
	require.ErrorIs(t, upload("a", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), -1), broken)
}

// zeros is an endless source.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestUploadSlowSource takes longer than the timeout between two pieces of content.
func TestUploadSlowSource(t *testing.T) {
	var got string
	f := files(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = string(text)
	})
	source, write := io.Pipe()
	go func() {
		for range 3 {
			late := time.NewTimer(1200 * time.Millisecond)
			<-late.C
			_, _ = io.WriteString(write, "x")
		}
		_ = write.Close()
	}()
	_, err := f.Upload(t.Context(), "v", "a", source, UploadOptions{})
	require.NoError(t, err)
	require.Equal(t, "xxx", got)
}

// TestUploadOfAnEditedFile: an upload replaces only the version that was read.
func TestUploadOfAnEditedFile(t *testing.T) {
	tag, text := `"1"`, "first"
	f := files(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("ETag", tag)
			_, _ = io.WriteString(w, text)
		case r.Header.Get("If-Match") == tag && r.Header.Get("If-None-Match") == "":
			body, _ := io.ReadAll(r.Body)
			tag, text = `"2"`, string(body)
			w.Header().Set("ETag", tag)
		default:
			w.Header().Set("X-Error-Code", string(v1.Precondition))
			http.Error(w, `{"error":"File was changed"}`, http.StatusPreconditionFailed)
		}
	})
	content, err := f.Download(t.Context(), "v", "a")
	require.NoError(t, err)
	require.NoError(t, content.Close())
	saved, err := f.Upload(t.Context(), "v", "a", strings.NewReader("second"), UploadOptions{IfMatch: content.ETag})
	require.NoError(t, err)
	require.Equal(t, `"2"`, saved)
	for _, o := range []UploadOptions{{IfMatch: content.ETag}, {IfNoneMatch: "*"}} {
		_, err = f.Upload(t.Context(), "v", "a", strings.NewReader("lost"), o)
		require.ErrorIs(t, err, &v1.Error{Code: v1.Precondition})
	}
	require.Equal(t, "second", text)
}
