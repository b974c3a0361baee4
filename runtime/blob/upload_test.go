package blob

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/s3test"
)

// TestETag: it is that of a server, for parts of each length.
func TestETag(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	for _, n := range []int{0, 1, testPart - 1, testPart, testPart + 1, 2 * testPart} {
		_, err := s.Put(t.Context(), "a", from(bytes.NewReader(random(n))))
		require.NoError(t, err, n) // it would be called altered
	}
}

// TestS3OldObjectIsNoSuccess: an object that the key had before is not taken for the
// archive of an upload that was not completed.
func TestS3OldObjectIsNoSuccess(t *testing.T) {
	server := s3test.Start(t)
	_, err := newTestS3(t, server, quick()).Put(t.Context(), "a", from(strings.NewReader("old")))
	require.NoError(t, err)
	server.Inject(s3test.Refuse(500, "InternalError"), s3test.Is("complete"), 0)
	_, err = newTestS3(t, server, hopeless()).Put(t.Context(), "a", from(strings.NewReader("new")))
	require.ErrorContains(t, err, "InternalError")
	require.Empty(t, server.Objects(t))
	require.Empty(t, server.Uploads(t))
}

// TestS3EndsTheWriter: an upload that fails ends a writer that waits, and Put waits for it.
func TestS3EndsTheWriter(t *testing.T) {
	server := s3test.Start(t)
	server.Inject(s3test.Refuse(403, "AccessDenied"), s3test.Is("part 1"), 0)
	ended := false
	_, err := newTestS3(t, server, quick()).Put(t.Context(), "a", func(ctx context.Context, w io.Writer) error {
		_, err := w.Write(random(testPart))
		<-ctx.Done()
		time.Sleep(10 * time.Millisecond)
		ended = true
		return err
	})
	require.ErrorContains(t, err, "AccessDenied")
	require.True(t, ended)
}

func TestS3ObjectOfAnotherSize(t *testing.T) {
	server := s3test.Start(t)
	server.Inject(s3test.Change(func(h http.Header) { h.Set("Content-Length", "7") }), s3test.Is("stat"), 0)
	_, err := newTestS3(t, server, hopeless()).Put(t.Context(), "a", from(strings.NewReader("x")))
	require.ErrorContains(t, err, "the object has 7 bytes, not 1")
	require.Empty(t, server.Objects(t))
}

// TestS3Memory: an archive that is much larger than the memory for it.
func TestS3Memory(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, defaultLimits())
	const size = 256 << 20
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := &peakReader{left: size}
	got, err := s.Put(t.Context(), "a", from(peak))
	require.NoError(t, err)
	require.EqualValues(t, size, got)
	require.Less(t, int64(peak.heap)-int64(before.HeapSys), int64((64+32)<<20))
}

// peakReader returns zeros and records the largest heap.
type peakReader struct {
	left int
	heap uint64
}

func (p *peakReader) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	b = b[:min(len(b), p.left, 1<<20)]
	clear(b)
	p.left -= len(b)
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	p.heap = max(p.heap, now.HeapSys-now.HeapReleased)
	return len(b), nil
}

// TestS3WithoutMetadata: a server need not know that a client has checksums, nor keep metadata.
func TestS3WithoutMetadata(t *testing.T) {
	server := s3test.Start(t)
	special := func(r *http.Request) bool {
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Amz-Meta-") || strings.HasPrefix(name, "X-Amz-Checksum-") || name == "X-Amz-Sdk-Checksum-Algorithm" {
				return true
			}
		}
		return false
	}
	server.Inject(s3test.Refuse(400, "InvalidArgument"), special, 0)
	_, err := newTestS3(t, server, quick()).Put(t.Context(), "a", from(bytes.NewReader(random(threeParts))))
	require.NoError(t, err)
}

// TestS3EncryptsWithItsKeys: the ETag of an encrypted object is not compared, its size is.
func TestS3EncryptsWithItsKeys(t *testing.T) {
	server := s3test.Start(t)
	change := func(length string) {
		server.Inject(s3test.Change(func(h http.Header) {
			h.Set("X-Amz-Server-Side-Encryption", "aws:kms")
			h.Set("Etag", `"00000000000000000000000000000000-1"`)
			h.Set("Content-Length", length)
		}), s3test.Is("stat"), 0)
	}
	s := newTestS3(t, server, hopeless())
	change("1")
	_, err := s.Put(t.Context(), "a", from(strings.NewReader("x")))
	require.NoError(t, err)
	change("2")
	_, err = s.Put(t.Context(), "a", from(strings.NewReader("x")))
	require.ErrorContains(t, err, "the object has 2 bytes, not 1")
	require.Empty(t, server.Objects(t))
}

// TestS3AlteredPart: the server stores other bytes than were sent, and does not notice it.
func TestS3AlteredPart(t *testing.T) {
	server := s3test.Start(t)
	server.Inject(s3test.AlterAndSign, s3test.Part(1), 0)
	_, err := newTestS3(t, server, hopeless()).Put(t.Context(), "a", from(strings.NewReader("content")))
	require.ErrorIs(t, err, errAltered)
	require.Empty(t, server.Objects(t))
}
