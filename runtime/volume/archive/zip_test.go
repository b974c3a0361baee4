package archive_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestZipModes reads modes as the systems write them that create zips.
func TestZipModes(t *testing.T) {
	const dos, unix, darwin, ntfs = 0 << 8, 3 << 8, 19 << 8, 10 << 8
	for _, c := range []struct {
		name       string
		system     uint16
		attributes uint32
		mode       fs.FileMode
	}{
		{"file", unix, 0o100755 << 16, 0o755},
		{"file", darwin, 0o100600 << 16, 0o600},
		{"file", unix, 0o106755 << 16, 0o755},
		{"file", unix, 0o644 << 16, 0o644},
		{"folder/", unix, 0o750 << 16, fs.ModeDir | 0o750},
		{"folder/", unix, 0o040711 << 16, fs.ModeDir | 0o711},
		{"file", unix, 0, 0o644},
		{"file", dos, 0x20, 0o644},
		{"file", ntfs, 0x01, 0o444},
		{"folder/", ntfs, 0, fs.ModeDir | 0o755},
		{"folder", dos, 0x10, fs.ModeDir | 0o755},
	} {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		_, err := w.CreateRaw(&zip.FileHeader{Name: c.name, CreatorVersion: c.system | 20, ExternalAttrs: c.attributes})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		var got list
		require.NoError(t, extract(buf.Bytes(), limits(), &got))
		require.Equal(t, c.mode, got[0].Mode, c)
		require.True(t, got[0].Time.IsZero(), "it has none")
	}
}

// TestZipWithoutDirectory cuts the end of a zip off.
func TestZipWithoutDirectory(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	_, err := w.Create("file")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for n := range buf.Len() {
		var got list
		require.Equal(t, v1.InvalidArchive, code(extract(buf.Bytes()[:n], limits(), &got)), n)
	}
}
