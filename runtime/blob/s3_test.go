package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/s3test"
)

// quick are limits with which a fault costs little time, also on a busy machine.
func quick() limits {
	return limits{stall: 2 * time.Second, attempts: 6, partSize: testPart, settle: 200 * time.Millisecond}
}

// hopeless are limits with which a fault that does not end is given up soon.
func hopeless() limits {
	return limits{stall: 2 * time.Second, attempts: 2, partSize: testPart, settle: 200 * time.Millisecond}
}

// testPart is the size of the smallest part that S3 permits.
const testPart = 5 << 20

func newTestS3(t *testing.T, server *s3test.Server, l limits) *S3 {
	t.Helper()
	s, err := newS3(S3Options{Endpoint: server.URL, Region: s3test.Region, Bucket: s3test.Bucket, Prefix: "node1",
		AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, PathStyle: true}, l)
	require.NoError(t, err)
	return s
}

// random returns bytes that no part has twice.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

const threeParts = 2*testPart + 12345

func TestS3KeepsArchives(t *testing.T) {
	server := s3test.Start(t)
	l := quick()
	l.stall = time.Minute // each request is sent once
	s := newTestS3(t, server, l)
	want := random(threeParts)
	size, err := s.Put(t.Context(), "a.tar.zst", from(iotest.HalfReader(bytes.NewReader(want))))
	require.NoError(t, err)
	require.EqualValues(t, len(want), size)
	require.Equal(t, []string{"node1/a.tar.zst"}, server.Objects(t))
	require.Equal(t, []string{"list", "create", "part 1", "part 2", "part 3", "complete", "stat", "list"}, server.Served())

	for _, offset := range []int64{0, 7, testPart, size - 1, size} {
		got, total := read(t, s, "a.tar.zst", offset)
		require.True(t, bytes.Equal(want[offset:], got), offset)
		require.Equal(t, size, total)
	}
	require.NoError(t, s.Abort(t.Context(), "a.tar.zst"))
	require.NotEmpty(t, server.Objects(t), "a complete archive stays")
	require.NoError(t, s.Delete(t.Context(), "a.tar.zst"))
	require.Empty(t, server.Objects(t))
	_, _, err = s.Open(t.Context(), "a.tar.zst", 0)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, s.Delete(t.Context(), "a.tar.zst"), "none is no error")
}

func TestS3EmptyAndWholeParts(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	for _, n := range []int{0, 1, testPart, 2 * testPart} {
		want := random(n)
		size, err := s.Put(t.Context(), "a", from(bytes.NewReader(want)))
		require.NoError(t, err, n)
		require.EqualValues(t, n, size)
		got, _ := read(t, s, "a", 0)
		require.True(t, bytes.Equal(want, got), n)
	}
}

// TestS3Faults: each fault at each request ends in an archive with the right bytes, or
// in an error that leaves nothing.
func TestS3Faults(t *testing.T) {
	want := random(testPart + 12345)
	passing := map[string]s3test.Fault{ // the client repeats a request
		"reset": s3test.Reset, "lose": s3test.Lose, "hang": s3test.Hang, "lose and hang": s3test.LoseAndHang,
		"500": s3test.Refuse(500, "InternalError"), "503": s3test.Refuse(503, "SlowDown"),
	}
	final := map[string]s3test.Fault{
		"error in 200": s3test.ErrorIn200, "wrong ETag": s3test.WrongETag, "altered": s3test.Alter, "altered and signed": s3test.AlterAndSign,
		"cut": s3test.Cut(20), "stop": s3test.Stop(20), "403": s3test.Refuse(403, "AccessDenied"),
	}
	var requests sync.WaitGroup // side by side, each with a server of its own: most of the time is waiting
	for _, request := range []string{"list", "create", "part 1", "part 2", "complete", "stat"} {
		server := s3test.Start(t)
		requests.Go(func() {
			for name, fault := range passing {
				t.Run(request+"/"+name, func(t *testing.T) {
					try(t, server, quick(), fault, request, 1, want, true)
					try(t, server, hopeless(), fault, request, 0, want, false)
				})
			}
			for name, fault := range final {
				t.Run(request+"/"+name, func(t *testing.T) {
					try(t, server, hopeless(), fault, request, 1, want, false)
				})
			}
		})
	}
	requests.Wait()
}

// try puts an archive while a fault occurs some times, and deletes it.
func try(t *testing.T, server *s3test.Server, l limits, fault s3test.Fault, request string, times int, want []byte, survives bool) {
	t.Helper()
	s := newTestS3(t, server, l)
	server.Inject(fault, s3test.Is(request), times)
	size, err := s.Put(t.Context(), "a", from(bytes.NewReader(want)))
	server.Clear()
	if survives {
		require.NoError(t, err)
	}
	if err == nil {
		require.EqualValues(t, len(want), size)
		require.True(t, bytes.Equal(want, server.Content(t, "node1/a")))
		require.Empty(t, server.Uploads(t))
		require.NoError(t, s.Delete(t.Context(), "a"))
	} else if strings.Contains(err.Error(), "the rest could not be removed") {
		require.Equal(t, []any{0, "list"}, []any{times, request}, err)
		require.NoError(t, s.Abort(t.Context(), "a"))
	}
	require.Empty(t, server.Objects(t), err)
	require.Empty(t, server.Uploads(t), err)
}

// TestS3AfterCrash: what a killed process left is no archive, and the next attempt
// removes it.
func TestS3AfterCrash(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	put := func(ctx context.Context, key string) error {
		_, err := s.Put(ctx, key, from(strings.NewReader("x")))
		return err
	}
	for _, next := range []func(context.Context, string) error{s.Abort, s.Delete, put} {
		server.NewUpload(t, "node1/a")
		server.NewUpload(t, "node1/a")
		server.NewUpload(t, "node1/a.b")
		_, _, err := s.Open(t.Context(), "a", 0)
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, next(t.Context(), "a"))
		require.Equal(t, []string{"node1/a.b"}, server.Uploads(t), "another key")
		require.NoError(t, s.Abort(t.Context(), "a.b"))
	}
}

func TestS3ReaderFails(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	for _, broken := range []error{errors.New("broken"), io.ErrUnexpectedEOF} {
		_, err := s.Put(t.Context(), "a", from(io.MultiReader(bytes.NewReader(random(testPart+1)), iotest.ErrReader(broken))))
		require.ErrorIs(t, err, broken)
		require.Empty(t, server.Objects(t))
		require.Empty(t, server.Uploads(t))
	}
}

// TestS3Cancelled: the end of the context ends a request that hangs, and what was
// uploaded is removed.
func TestS3Cancelled(t *testing.T) {
	server := s3test.Start(t)
	l := quick()
	l.stall, l.settle = time.Hour, time.Second
	s := newTestS3(t, server, l)
	stopping := errors.New("stopping")
	for _, request := range []string{"part 2", "complete", "stat"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		server.Inject(func(server *s3test.Server, w http.ResponseWriter, r *http.Request) {
			cancel(stopping)
			s3test.LoseAndHang(server, w, r)
		}, s3test.Is(request), 1)
		_, err := s.Put(ctx, "a", from(bytes.NewReader(random(threeParts))))
		require.ErrorIs(t, err, stopping, request)
		require.Empty(t, server.Objects(t), request)
		require.Empty(t, server.Uploads(t), request)
	}
}

func TestS3Presign(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	_, err := s.Put(t.Context(), "a", from(strings.NewReader("content")))
	require.NoError(t, err)
	u, err := s.Presign(t.Context(), "a", `my "backup".tar.zst`, 5*time.Minute)
	require.NoError(t, err)
	require.NotContains(t, u, s3test.SecretKey)
	require.Contains(t, u, "X-Amz-Expires=300")
	answer, err := http.Get(u)
	require.NoError(t, err)
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "content", string(got))
	require.Equal(t, `attachment; filename="my \"backup\".tar.zst"`, answer.Header.Get("Content-Disposition"))
	require.Equal(t, "application/zstd", answer.Header.Get("Content-Type"))
}

func TestS3Reach(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	require.NoError(t, s.Reach(t.Context()))
	for _, c := range []struct {
		change func(*S3Options)
		want   string
	}{
		{func(o *S3Options) { o.Bucket = "another" }, "NoSuchBucket"},
		{func(o *S3Options) { o.SecretKey = "wrong" }, "SignatureDoesNotMatch"},
		{func(o *S3Options) { o.AccessKey = "wrong" }, "No user exists"},
		{func(o *S3Options) { o.Endpoint = "http://127.0.0.1:1" }, "dial: connect: connection refused"},
		{func(o *S3Options) { o.Endpoint = "http://s3.invalid" }, "lookup: "},
	} {
		o := s.options
		c.change(&o)
		bad, err := newS3(o, quick())
		require.NoError(t, err)
		err = bad.Reach(t.Context())
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), o.SecretKey)
		require.NotContains(t, err.Error(), "127.0.0.1")
		_, err = bad.Put(t.Context(), "a", from(strings.NewReader("x")))
		require.ErrorContains(t, err, c.want)
	}
}
