package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/japanese"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
)

// zipOf returns a zip with empty files, whose names are written as they are.
func zipOf(t *testing.T, system uint16, names ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, name := range names {
		_, err := w.CreateRaw(&zip.FileHeader{Name: name, NonUTF8: true, CreatorVersion: system<<8 | 20})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// extractNames returns the names that a zip extracts to, folders with a slash.
func extractNames(t *testing.T, data []byte, encoding string) (names []string) {
	t.Helper()
	_, err := archive.Extract(t.Context(), bytes.NewReader(data), int64(len(data)), archive.Options{Limits: limits(), Encoding: encoding},
		each(func(e archive.Entry) error {
			if e.Mode.IsDir() {
				e.Name += "/"
			}
			names = append(names, e.Name)
			return nil
		}))
	require.NoError(t, err)
	return names
}

// TestZipNames reads names as the programs of Windows write them.
func TestZipNames(t *testing.T) {
	for _, c := range []struct {
		system         uint16
		name, encoding string
		want           string
	}{
		{0, `world\region\r.0.0.mca`, "", "world/region/r.0.0.mca"},
		{10, `world\`, "", "world/"},
		{11, `a\b`, "", "a/b"},
		{0, `a/b\c`, "", `a/b\c`},
		{0, `\a\b`, "", "a/b"},
		{3, `a\b`, "", `a\b`},
		{0, "caf\x82", "", "café"},
		{0, "caf\xe9", "windows-1252", "café"},
		{3, "café", "", "café"},
		{0, "plain", "Shift_JIS", "plain"},
	} {
		require.Equal(t, []string{c.want}, extractNames(t, zipOf(t, c.system, c.name), c.encoding), "%+v", c)
	}
	name, err := japanese.ShiftJIS.NewEncoder().String(`表\ワールド`) // the second byte of the first character is a backslash
	require.NoError(t, err)
	require.Equal(t, []string{"表/ワールド"}, extractNames(t, zipOf(t, 0, name), "Shift_JIS"))
	for _, hostile := range []string{`..\a`, `a\..\..\b`, `\..\a`, `c:\a`} {
		require.ErrorIs(t, extract(zipOf(t, 0, hostile), limits(), &list{}), v1.ErrInvalidPath, hostile)
	}
	_, err = archive.Extract(t.Context(), bytes.NewReader(nil), 0, archive.Options{Encoding: "nonsense"}, &list{})
	require.Equal(t, v1.InvalidRequest, code(err))
	require.ErrorContains(t, err, `encoding: "nonsense" is not known`)
}

// TestZipMethods: the refusal names the method.
func TestZipMethods(t *testing.T) {
	for method, name := range map[uint16]string{9: "Deflate64 (9)", 14: "LZMA (14)", 77: "unknown method 77"} {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		_, err := w.CreateRaw(&zip.FileHeader{Name: "file", Method: method})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		err = extract(buf.Bytes(), limits(), &list{})
		require.Equal(t, v1.InvalidArchive, code(err))
		require.ErrorContains(t, err, name)
	}
}

// TestSkippedEntries: labels and devices are skipped; the first 100 are listed, all are
// counted, and the limit of entries counts them.
func TestSkippedEntries(t *testing.T) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: 'V', Name: "the label"}))
	for i := range 150 {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeFifo, Name: fmt.Sprint("fifo", i)}))
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "file"}))
	require.NoError(t, w.Close())
	var got list
	result, err := archive.Extract(t.Context(), bytes.NewReader(buf.Bytes()), int64(buf.Len()), archive.Options{Limits: limits()}, &got)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Len(t, result.Skipped, 100)
	require.Equal(t, v1.Skipped{Path: "the label", Reason: "special"}, result.Skipped[0])
	require.Equal(t, 151, result.SkippedTotal)
	require.ErrorContains(t, extract(buf.Bytes(), archiveOf(100), &got), "more than 100 entries")
}
