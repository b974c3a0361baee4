package server

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// heldFiles is a Files whose operations block until they are released.
type heldFiles struct {
	Files
	begun   chan string
	release chan struct{}
}

func (f *heldFiles) hold(ctx context.Context, name string) error {
	f.begun <- name
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.release:
		return nil
	}
}

func (f *heldFiles) Compress(ctx context.Context, _ string, _ v1.Compression) (v1.Archive, error) {
	return v1.Archive{}, f.hold(ctx, "compress")
}

func (f *heldFiles) Decompress(ctx context.Context, _ string, _ v1.Decompression) (v1.Extraction, error) {
	return v1.Extraction{}, f.hold(ctx, "decompress")
}

func (f *heldFiles) Extract(ctx context.Context, _ string, _ io.Reader, _ v1.Decompression) (v1.Extraction, error) {
	return v1.Extraction{}, f.hold(ctx, "extract")
}

func (f *heldFiles) Archive(ctx context.Context, _ string, _ v1.Tree) (v1.ArchiveStream, error) {
	return emptyArchive{}, f.hold(ctx, "archive")
}

// emptyArchive is an archive of nothing.
type emptyArchive struct{}

func (emptyArchive) WriteTo(io.Writer) (int64, error) { return 0, nil }
func (emptyArchive) Close() error                     { return nil }

func (f *heldFiles) Copy(ctx context.Context, _, _, _ string) error { return f.hold(ctx, "copy") }

func (f *heldFiles) Search(ctx context.Context, _, _, _ string) (v1.SearchResult, error) {
	return v1.SearchResult{Files: []v1.FoundFile{}}, f.hold(ctx, "search")
}

// Write does not wait.
func (f *heldFiles) Write(context.Context, string, string, io.Reader, func(fs.FileInfo) error) (fs.FileInfo, error) {
	return nil, nil
}

// TestExpensiveOperations: two of a volume run at once, some are queued, and the
// others are refused. Other operations and other volumes are not affected.
func TestExpensiveOperations(t *testing.T) {
	calls := map[string]request{
		"compress":   {method: "POST", path: "compress", body: `{"output_name":"x"}`},
		"decompress": {method: "POST", path: "decompress", body: `{"archive_path":"x","destination":"y"}`},
		"archive":    {method: "GET", path: "archive"},
		"extract":    {method: "PUT", path: "archive", body: "x"},
		"copy":       {method: "POST", path: "copy", body: `{"source":"x","destination":"y"}`},
		"search":     {method: "GET", path: "files/search?query=x"},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			f := &heldFiles{begun: make(chan string, 100), release: make(chan struct{})}
			h := newHarnessWith(t, func(d *Deps) { d.Files = f })
			id, other := h.volume(), h.volume()
			l, bounds := h.server.handlers.files.permits.walks, limit.Walks()
			switch {
			case strings.HasSuffix(name, "compress"):
				l, bounds = h.server.handlers.files.permits.archives, limit.Archives()
			case name == "extract", name == "archive":
				l, bounds = h.server.handlers.files.permits.streams, limit.ArchiveStreams()
			}
			on := func(volume string) request {
				r := call
				r.path = "/volumes/" + volume + "/" + call.path
				return r
			}
			answers := make(chan answer, 100)
			many := bounds.Object + bounds.Wait
			for range many {
				go func() { answers <- h.do(on(id)) }()
			}
			require.Eventually(t, func() bool {
				return l.Waiting() == bounds.Wait && len(f.begun) == bounds.Object
			}, time.Minute, time.Millisecond)
			a := h.do(on(id))
			require.Equal(t, "429 too_many_operations 5", fmt.Sprint(a.status, " ", a.header.Get("X-Error-Code"), " ", a.header.Get("Retry-After")))
			require.Equal(t, 200, h.do(request{method: "POST", path: "/volumes/" + id + "/files", body: `{"path":"x","content":""}`}).status)
			go func() { answers <- h.do(on(other)) }()
			for range bounds.Object + 1 {
				<-f.begun
			}
			close(f.release)
			for range many + 1 {
				require.Equal(t, 200, (<-answers).status)
			}
			require.Zero(t, l.Used())
			require.Zero(t, h.server.handlers.files.permits.files.Used())
		})
	}
}
