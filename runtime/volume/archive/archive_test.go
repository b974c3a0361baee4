package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var made = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

func limits() archive.Limits {
	return archive.Limits{Bytes: 1 << 30, Entries: 1000, Depth: 20, Ratio: 1000, ZipDirectoryBytes: 1 << 20}
}

func archiveOf(entries int) archive.Limits {
	l := limits()
	l.Entries = entries
	return l
}

func file(name, content string) archive.Entry {
	return archive.Entry{Name: name, Mode: 0o640, Time: made, Size: int64(len(content)), Content: strings.NewReader(content)}
}

// each is a Destination that is a function.
type each func(archive.Entry) error

func (f each) Add(e archive.Entry) error { return f(e) }

// received is an entry and its content.
type received struct {
	archive.Entry
	text string
}

// list is a Destination that keeps all entries.
type list []received

func (l *list) Add(e archive.Entry) error {
	var text []byte
	var err error
	if e.Content != nil {
		text, err = io.ReadAll(e.Content)
	}
	e.Content, e.Time = nil, e.Time.UTC()
	*l = append(*l, received{e, string(text)})
	return err
}

func extract(data []byte, limits archive.Limits, dst archive.Destination) error {
	_, err := archive.Extract(context.Background(), bytes.NewReader(data), int64(len(data)), archive.Options{Limits: limits}, dst)
	return err
}

// extractStream is extract of an archive that arrives, byte by byte.
func extractStream(data []byte, limits archive.Limits, dst archive.Destination) error {
	keep := func(r io.Reader) (io.ReaderAt, int64, error) {
		all, err := io.ReadAll(r)
		return bytes.NewReader(all), int64(len(all)), err
	}
	_, err := archive.ExtractStream(context.Background(), iotest.OneByteReader(bytes.NewReader(data)), archive.Options{Limits: limits, Name: "x", Spool: keep}, dst)
	return err
}

// code returns the code of an API error.
func code(err error) v1.Code {
	var e *v1.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func write(t testing.TB, format string, entries []archive.Entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := archive.NewWriter(format, &buf, limits())
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, w.Add(e))
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// allFormats are those that a Writer writes.
func allFormats() []string { return append(v1.Formats(), "tar.zst") }

func TestWriteAndExtract(t *testing.T) {
	for _, format := range allFormats() {
		data := write(t, format, []archive.Entry{
			{Name: "folder", Mode: fs.ModeDir | 0o711, Time: made},
			file("folder/file", "some text"), file("empty", ""),
			{Name: "link", Mode: fs.ModeSymlink | 0o777, Time: made, Target: "folder/file"},
		})
		for _, extract := range []func([]byte, archive.Limits, archive.Destination) error{extract, extractStream} {
			var got list
			require.NoError(t, extract(data, limits(), &got), format)
			require.Equal(t, list{
				{archive.Entry{Name: "folder", Mode: fs.ModeDir | 0o711, Time: made}, ""},
				{archive.Entry{Name: "folder/file", Mode: 0o640, Time: made, Size: 9}, "some text"},
				{archive.Entry{Name: "empty", Mode: 0o640, Time: made}, ""},
				{archive.Entry{Name: "link", Mode: fs.ModeSymlink | 0o777, Time: made, Target: "folder/file",
					Size: got[3].Size}, ""},
			}, got, format)
		}
	}
}

// TestExtractIntoWriter converts a tar to a zip.
func TestExtractIntoWriter(t *testing.T) {
	var buf bytes.Buffer
	w, err := archive.NewWriter("zip", &buf, limits())
	require.NoError(t, err)
	require.NoError(t, extract(write(t, "tar.gz", []archive.Entry{file("a", "1"), file("b", "2")}), limits(), w))
	require.NoError(t, w.Close())
	var got list
	require.NoError(t, extract(buf.Bytes(), limits(), &got))
	require.Len(t, got, 2)
	require.Equal(t, "2", got[1].text)
}

func TestHardLinks(t *testing.T) {
	first := archive.Entry{Name: "b", HardLink: true, Target: "a", Time: made}
	for _, format := range allFormats() {
		if !archive.HardLinks(format) {
			w, err := archive.NewWriter(format, io.Discard, limits())
			require.NoError(t, err)
			require.ErrorIs(t, w.Add(first), errors.ErrUnsupported)
			require.NoError(t, w.Close())
			continue
		}
		var got list
		require.NoError(t, extract(write(t, format, []archive.Entry{file("a", "text"), first}), limits(), &got))
		require.True(t, got[1].HardLink)
		require.Equal(t, "a", got[1].Target)
	}
}

// failing is a writer that fails after some bytes.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, v1.ErrDiskFull
	}
	return len(p), nil
}

// TestWriterFails checks that Close returns the error of the output, and that Add
// does so soon.
func TestWriterFails(t *testing.T) {
	noise := strings.Repeat("0123456789abcdef", 1<<16)
	for _, format := range allFormats() {
		w, err := archive.NewWriter(format, &failing{1000}, limits())
		require.NoError(t, err)
		added := 0
		for ; added < 200 && err == nil; added++ {
			err = w.Add(file("f", noise))
		}
		require.ErrorIs(t, err, v1.ErrDiskFull, format)
		require.Equal(t, v1.ErrDiskFull, w.Close(), format)
	}
	_, err := archive.NewWriter("rar", io.Discard, limits())
	require.ErrorContains(t, err, "not supported")
}

// TestDestinationFails checks that the error of a Destination ends an extraction and
// is returned unchanged.
func TestDestinationFails(t *testing.T) {
	for _, format := range allFormats() {
		n := 0
		err := extract(write(t, format, []archive.Entry{file("a", "1"), file("b", "2")}), limits(), each(func(archive.Entry) error {
			n++
			return v1.ErrDiskFull
		}))
		require.Equal(t, v1.ErrDiskFull, err, format)
		require.Equal(t, 1, n, format)
	}
}

// TestSourceFails checks that a failed read is not reported as a damaged archive.
func TestSourceFails(t *testing.T) {
	broken := errors.New("input/output error")
	noise := strings.Repeat("0123456789abcdef", 1<<16)
	for _, format := range allFormats() {
		data := write(t, format, []archive.Entry{file("a", noise)})
		var got list
		_, err := archive.Extract(t.Context(), &brokenReader{data: data, from: int64(len(data)) / 2, err: broken}, int64(len(data)), archive.Options{Limits: limits()}, &got)
		require.ErrorIs(t, err, broken, format)
		require.Empty(t, code(err), format)

		for cut := range len(data) { // an archive that ends before its end
			if cut > 2000 && cut < len(data)-2000 {
				continue
			}
			arrives := io.MultiReader(bytes.NewReader(data[:cut]), iotest.ErrReader(broken))
			keep := func(r io.Reader) (io.ReaderAt, int64, error) {
				_, err := io.ReadAll(r)
				return nil, 0, err
			}
			_, err := archive.ExtractStream(t.Context(), arrives, archive.Options{Limits: limits(), Spool: keep}, each(func(e archive.Entry) error {
				_, err := io.Copy(io.Discard, e.Content)
				return err
			}))
			require.ErrorIs(t, err, broken, "%s after %d of %d bytes", format, cut, len(data))
			require.Empty(t, code(err), format)
		}
	}
}

// TestStreamFormat: an announced format must be the one that arrives, and a compressed file has no name.
func TestStreamFormat(t *testing.T) {
	for _, format := range allFormats() {
		data := write(t, format, []archive.Entry{file("a", "1")})
		for _, want := range v1.StreamFormats() {
			keep := func(io.Reader) (io.ReaderAt, int64, error) { return bytes.NewReader(data), int64(len(data)), nil }
			_, err := archive.ExtractStream(t.Context(), bytes.NewReader(data), archive.Options{Limits: limits(), Format: want, Spool: keep}, &list{})
			if want == format {
				require.NoError(t, err, format)
			} else {
				require.EqualError(t, err, "Archive is not in the format "+want+", which was announced", format)
			}
		}
	}
	var file, empty bytes.Buffer
	for out, text := range map[*bytes.Buffer][]byte{&file: []byte("a line of a log"), &empty: make([]byte, 10240)} {
		z := gzip.NewWriter(out)
		_, err := z.Write(text)
		require.NoError(t, err)
		require.NoError(t, z.Close())
	}
	_, err := archive.ExtractStream(t.Context(), &file, archive.Options{Limits: limits()}, &list{})
	require.EqualError(t, err, "Not an archive: a compressed file that is no tar")
	_, err = archive.ExtractStream(t.Context(), &empty, archive.Options{Limits: limits()}, &list{})
	require.NoError(t, err, "an empty tar")
}

// brokenReader reads data up to an offset.
type brokenReader struct {
	data []byte
	from int64
	err  error
}

func (b *brokenReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.from {
		return 0, b.err
	}
	return bytes.NewReader(b.data).ReadAt(p, off)
}
