package blob

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/s3test"
)

// TestS3Downloads: a download survives faults, and never returns other bytes.
func TestS3Downloads(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	want := random(threeParts)
	_, err := s.Put(t.Context(), "a", from(bytes.NewReader(want)))
	require.NoError(t, err)
	for name, fault := range map[string]s3test.Fault{
		"reset": s3test.Reset, "hang": s3test.Hang, "503": s3test.Refuse(503, "SlowDown"), "cut": s3test.Cut(threeParts / 2), "stop": s3test.Stop(threeParts / 2),
		"cut at 0": s3test.Cut(0),
	} {
		server.Inject(fault, s3test.Is("get"), 2)
		for _, offset := range []int64{0, 99} {
			got, _ := read(t, s, "a", offset)
			require.True(t, bytes.Equal(want[offset:], got), name)
		}
		server.Clear()
	}
	for name, fault := range map[string]s3test.Fault{"reset": s3test.Reset, "cut at 0": s3test.Cut(0), "403": s3test.Refuse(403, "AccessDenied"), "no bucket": s3test.Refuse(404, "NoSuchBucket")} {
		server.Inject(fault, s3test.Is("get"), 0)
		r, _, err := newTestS3(t, server, hopeless()).Open(t.Context(), "a", 0)
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		require.Error(t, err, name)
		require.NotErrorIs(t, err, ErrNotFound, name)
		server.Clear()
	}
}

// TestS3ArchiveIsReplaced: a reader never receives the bytes of two archives.
func TestS3ArchiveIsReplaced(t *testing.T) {
	server := s3test.Start(t)
	s := newTestS3(t, server, quick())
	_, err := s.Put(t.Context(), "a", from(bytes.NewReader(random(threeParts))))
	require.NoError(t, err)
	server.Inject(s3test.Cut(1000), s3test.Is("get"), 1)
	r, _, err := s.Open(t.Context(), "a", 0)
	require.NoError(t, err)
	defer r.Close()
	_, err = s.Put(t.Context(), "a", from(bytes.NewReader(make([]byte, threeParts))))
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorIs(t, err, errChanged)
}
