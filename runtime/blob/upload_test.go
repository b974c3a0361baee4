package blob

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"

	"berth/hack/test/s3test"
)

// TestPartSizes: all parts that S3 permits hold 1 TiB, and the first ones are equal, as
// some servers require.
func TestPartSizes(t *testing.T) {
	total := int64(0)
	for number := 1; number <= maxParts; number++ {
		size := partSize(number)
		require.GreaterOrEqual(t, size, partSize(max(1, number-1)))
		require.Less(t, size, 512<<20)
		total += int64(size)
	}
	require.Greater(t, total, int64(1)<<40)
	require.Equal(t, firstSize, partSize(4000))
	require.Less(t, 10<<30, 4000*firstSize)
}

func TestTooManyParts(t *testing.T) {
	empty, full := make(chan []byte, maxParts+1), make(chan []byte, maxParts)
	for range maxParts + 1 {
		empty <- nil
	}
	err := split(t.Context(), endless{}, empty, full, func(int) int { return 1 })
	require.ErrorContains(t, err, "larger than 10000 parts")
	require.Len(t, full, maxParts)
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestVerifyPart(t *testing.T) {
	p := newPart(1, []byte("content"))
	right, wrong := hex.EncodeToString(p.md5[:]), strings.Repeat("0", 32)
	kms := http.Header{"X-Amz-Server-Side-Encryption": {"aws:kms"}}
	for _, c := range []struct {
		etag, checksum string
		header         http.Header
		want           error
	}{
		{right, p.checksum(), nil, nil},
		{right, "", nil, nil},
		{wrong, p.checksum(), nil, errAltered},
		{right, "AAAA", nil, errAltered},
		{"", p.checksum(), nil, errAltered},
		{wrong, p.checksum(), kms, nil},
		{wrong, "", kms, errUnverified},
		{right, "AAAA", kms, errAltered},
	} {
		require.Equal(t, c.want, p.verify(minio.ObjectPart{ETag: c.etag, ChecksumSHA256: c.checksum}, c.header), "%+v", c)
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
		_, err := w.Write(random(firstSize))
		<-ctx.Done()
		time.Sleep(10 * time.Millisecond)
		ended = true
		return err
	})
	require.ErrorContains(t, err, "AccessDenied")
	require.True(t, ended)
}

// TestS3ObjectVisibleLate: some servers show an object some time after it is complete.
func TestS3ObjectVisibleLate(t *testing.T) {
	server := s3test.Start(t)
	server.Inject(s3test.Refuse(404, "NoSuchKey"), s3test.Is("stat"), 3)
	_, err := newTestS3(t, server, quick()).Put(t.Context(), "a", from(strings.NewReader("x")))
	require.NoError(t, err)
	require.Equal(t, "x", string(server.Content(t, "node1/a")))
	require.Equal(t, []string{"list", "create", "part 1", "list", "complete", "!stat", "!stat", "!stat", "stat"}, server.Served(), "an upload is completed once")
}

// TestBodyEndsWithItsRequest: the buffer of a part is used again.
func TestBodyEndsWithItsRequest(t *testing.T) {
	b := &body{reader: bytes.NewReader([]byte("content"))}
	require.NoError(t, b.Close())
	n, err := b.Read(make([]byte, 7))
	require.Zero(t, n)
	require.Error(t, err)
}

func TestS3ObjectOfAnotherSize(t *testing.T) {
	server := s3test.Start(t)
	server.Inject(s3test.Change(func(h http.Header) { h.Set("Content-Length", "7") }), s3test.Is("stat"), 0)
	_, err := newTestS3(t, server, hopeless()).Put(t.Context(), "a", from(strings.NewReader("x")))
	require.ErrorContains(t, err, "the object has 7 bytes, not 1")
	require.Empty(t, server.Objects(t))
}

// TestS3WithoutChecksums: a server that does not know checksums of parts is used
// without them, and its ETags are compared.
func TestS3WithoutChecksums(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	knows := func(r *http.Request) bool { return r.Header.Get("X-Amz-Checksum-Algorithm") != "" }
	refuse := s3test.Refuse(400, "InvalidArgument")
	server.Inject(refuse, knows, 0)
	_, err := s.Put(t.Context(), "a", from(strings.NewReader("x")))
	require.NoError(t, err)
	server.Inject(func(server *s3test.Server, w http.ResponseWriter, r *http.Request) {
		if knows(r) {
			refuse(server, w, r)
		} else {
			s3test.AlterAndSign(server, w, r)
		}
	}, func(r *http.Request) bool { return knows(r) || s3test.Part(1)(r) }, 0)
	_, err = newTestS3(t, server, hopeless()).Put(t.Context(), "a", from(strings.NewReader("x")))
	require.ErrorIs(t, err, errAltered)
	require.Equal(t, "x", string(server.Content(t, "node1/a")), "the old archive stays until another is complete")
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
	require.Less(t, int64(peak.heap)-int64(before.HeapSys), int64(64<<20))
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

// TestS3PartArrivesAfterAbort: a server receives a part that was given up, and keeps the
// upload for it.
func TestS3PartArrivesAfterAbort(t *testing.T) {
	server := s3test.Start(t)
	l := quick()
	l.settle = time.Second
	ctx, cancel := context.WithCancel(t.Context())
	arrived := make(chan struct{})
	server.Inject(func(server *s3test.Server, w http.ResponseWriter, r *http.Request) {
		cancel()
		aborted := false
		for range 5000 { // until the list after the abort found nothing
			seen := server.Served()
			if aborted && slices.Contains(seen, "list") || slices.Contains(seen, "abort") && seen[len(seen)-1] == "list" {
				break
			}
			aborted = aborted || slices.Contains(seen, "abort")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(l.settle / 10)
		server.NewUpload(t, "node1/a")
		close(arrived)
	}, s3test.Part(1), 1)
	_, err := newTestS3(t, server, l).Put(ctx, "a", from(strings.NewReader("x")))
	require.ErrorIs(t, err, context.Canceled)
	<-arrived
	require.Empty(t, server.Uploads(t))
}
