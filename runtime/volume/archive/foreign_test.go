package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
)

// unicodePath returns the extra field of a name, whose checksum is that of the name raw.
func unicodePath(raw, name string) []byte {
	field := binary.LittleEndian.AppendUint16(nil, 0x7075)
	field = binary.LittleEndian.AppendUint16(field, uint16(5+len(name)))
	field = append(field, 1)
	field = binary.LittleEndian.AppendUint32(field, crc32.ChecksumIEEE([]byte(raw)))
	return append(field, name...)
}

// TestZipUnicodePath: WinRAR, WinZip and 7-Zip write the name in UTF-8 beside the one of their code page. A
// program that renamed the entry, and does not know the field, left a wrong checksum.
func TestZipUnicodePath(t *testing.T) {
	const raw = "\x8f\xe0\xa8\xa2\xa5\xe2.txt" // in IBM866
	for _, c := range []struct {
		extra          []byte
		encoding, want string
	}{
		{unicodePath(raw, "Привет.txt"), "", "Привет.txt"},
		{append([]byte{9, 9, 1, 0, 'x'}, unicodePath(raw, "Привет.txt")...), "IBM850", "Привет.txt"},
		{unicodePath("another", "Привет.txt"), "", "Åα¿óÑΓ.txt"},
		{unicodePath(raw, "\xff"), "", "Åα¿óÑΓ.txt"},
		{unicodePath(raw, "Привет.txt")[:8], "", "Åα¿óÑΓ.txt"},
		{[]byte{0x75, 0x70, 5, 0, 2, 0, 0, 0, 0}, "", "Åα¿óÑΓ.txt"},
		{nil, "IBM866", "Привет.txt"},
	} {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		_, err := w.CreateRaw(&zip.FileHeader{Name: raw, NonUTF8: true, Extra: c.extra})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.Equal(t, []string{c.want}, extractNames(t, buf.Bytes(), c.encoding), "%+v", c)
	}
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	_, err := w.CreateRaw(&zip.FileHeader{Name: raw, NonUTF8: true, Extra: unicodePath(raw, "../ö")})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorIs(t, extract(buf.Bytes(), limits(), &list{}), v1.ErrInvalidPath)
}

// TestZipOfBytes: names that are not UTF-8 come back as they were, also when berth wrote the zip.
func TestZipOfBytes(t *testing.T) {
	for _, system := range []uint16{3, 19, 7} {
		require.Equal(t, []string{"caf\xe9.txt"}, extractNames(t, zipOf(t, system, "caf\xe9.txt"), ""))
		require.Equal(t, []string{"café.txt"}, extractNames(t, zipOf(t, system, "caf\xe9.txt"), "windows-1252"))
	}
	names := []string{"caf\xe9.txt", "caf\x82", "café", `a\b`, "\xf0\x9f\x98\x80", "a\x01b"}
	for _, format := range allFormats() {
		var entries []archive.Entry
		for _, name := range names {
			entries = append(entries, file(name, "x"))
		}
		require.Equal(t, names, extractNames(t, write(t, format, entries), ""), format)
	}
}

// TestZipLocalTimes: without a field in UTC a time is that of a clock on a wall.
func TestZipLocalTimes(t *testing.T) {
	here := time.Local
	t.Cleanup(func() { time.Local = here })
	time.Local = time.FixedZone("UTC+5", 5*3600)
	times := func(h zip.FileHeader) time.Time {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		_, err := w.CreateRaw(&h)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		var got list
		require.NoError(t, extract(buf.Bytes(), limits(), &got))
		return got[0].Time
	}
	const date, clock = (2024-1980)<<9 | 5<<5 | 6, 7<<11 | 8<<5 | 10/2
	require.Equal(t, time.Date(2024, 5, 6, 2, 8, 10, 0, time.UTC), times(zip.FileHeader{Name: "a", ModifiedDate: date, ModifiedTime: clock}))
	utc := []byte{'U', 'T', 5, 0, 1, 0, 0, 0, 0}
	binary.LittleEndian.PutUint32(utc[5:], uint32(made.Unix()))
	require.Equal(t, made, times(zip.FileHeader{Name: "a", ModifiedDate: date, ModifiedTime: clock, Extra: utc}))
	require.Equal(t, made, times(zip.FileHeader{Name: "a", Extra: utc}))
	require.True(t, times(zip.FileHeader{Name: "a"}).IsZero())
	var got list
	require.NoError(t, extract(write(t, "zip", []archive.Entry{file("a", "x")}), limits(), &got))
	require.Equal(t, made, got[0].Time)
}

// TestZipOfStandardInput: `… | zip x.zip -` writes the mode of the pipe that it read.
func TestZipOfStandardInput(t *testing.T) {
	for mode, want := range map[fs.FileMode]bool{fs.ModeNamedPipe | 0o600: true, fs.ModeSocket | 0o600: true, fs.ModeDevice | fs.ModeCharDevice | 0o600: true} {
		for text, want := range map[string]bool{"content": want, "": false} {
			var buf bytes.Buffer
			w := zip.NewWriter(&buf)
			h := &zip.FileHeader{Name: "-", Method: zip.Deflate}
			h.SetMode(mode)
			f, err := w.CreateHeader(h)
			require.NoError(t, err)
			_, err = f.Write([]byte(text))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			var got list
			require.NoError(t, extract(buf.Bytes(), limits(), &got))
			if !want {
				require.Empty(t, got)
				continue
			}
			require.Equal(t, fs.FileMode(0o600), got[0].Mode)
			require.Equal(t, text, got[0].text)
		}
	}
}

// TestAbsoluteNames: `tar -P` keeps them; they are relative, as tar itself extracts them.
func TestAbsoluteNames(t *testing.T) {
	for _, format := range allFormats() {
		entries := []archive.Entry{{Name: "/", Mode: fs.ModeDir | 0o755}, file("/srv/a", "1"), file("//srv//b", "2")}
		want := []string{"./", "srv/a", "srv/b"}
		if archive.HardLinks(format) {
			entries, want = append(entries, archive.Entry{Name: "/c", HardLink: true, Target: "/srv/a"}), append(want, "c")
		}
		data := write(t, format, entries)
		require.Equal(t, want, extractNames(t, data, ""), format)
		var got list
		require.NoError(t, extract(data, limits(), &got))
		if archive.HardLinks(format) {
			require.Equal(t, "srv/a", got[3].Target)
		}
		for _, hostile := range []string{"/../a", "/a/../b", `/\a`, "/c:/a"} {
			require.ErrorIs(t, extract(write(t, format, []archive.Entry{file(hostile, "")}), limits(), &list{}), v1.ErrInvalidPath, hostile)
		}
	}
}

// TestBehindGzip: tapes and disks fill the rest of a block with zeros; a signature or a half second
// download is no part of the archive.
func TestBehindGzip(t *testing.T) {
	whole := write(t, "tar.gz", []archive.Entry{file("a", "1")})
	var second bytes.Buffer
	z := gzip.NewWriter(&second)
	_, err := z.Write(make([]byte, 512))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	zeros := make([]byte, 300_000)
	trailing := []v1.Skipped{{Path: "x.tar.gz", Reason: "trailing"}}
	for name, c := range map[string]struct {
		behind  [][]byte
		skipped []v1.Skipped
	}{
		"nothing":         {nil, nil},
		"zeros":           {[][]byte{zeros}, nil},
		"a second stream": {[][]byte{second.Bytes()}, nil},
		"and zeros":       {[][]byte{second.Bytes(), zeros}, nil},
		"a signature":     {[][]byte{[]byte("-----BEGIN PGP SIGNATURE-----")}, trailing},
		"one byte":        {[][]byte{{0x1f}}, trailing},
		"zeros and bytes": {[][]byte{zeros, []byte("x")}, trailing},
	} {
		data := bytes.Clone(whole)
		for _, part := range c.behind {
			data = append(data, part...)
		}
		var got list
		result, err := archive.Extract(t.Context(), bytes.NewReader(data), int64(len(data)), archive.Options{Limits: limits(), Name: "b/x.tar.gz"}, &got)
		require.NoError(t, err, name)
		require.Len(t, got, 1, name)
		require.Equal(t, v1.Extraction{Skipped: c.skipped, SkippedTotal: len(c.skipped)}, result, name)
	}
	damaged := append(bytes.Clone(whole), second.Bytes()[:second.Len()-4]...)
	require.Equal(t, v1.InvalidArchive, code(extract(damaged, limits(), &list{})))
	one := append(second.Bytes(), "rest"...)
	var got list
	result, err := archive.Extract(t.Context(), bytes.NewReader(one), int64(len(one)), archive.Options{Limits: limits(), Name: "log.gz"}, &got)
	require.NoError(t, err)
	require.Equal(t, "log", got[0].Name)
	require.Len(t, got[0].text, 512)
	require.Equal(t, []v1.Skipped{{Path: "log.gz", Reason: "trailing"}}, result.Skipped)
}

// TestLinkToTheHundredAndFirst: a hard link to an entry that was skipped, but is not listed, is skipped too.
func TestLinkToTheHundredAndFirst(t *testing.T) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := range 150 {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeFifo, Name: fmt.Sprint("fifo", i)}))
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: "link", Linkname: "fifo140"}))
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "file"}))
	require.NoError(t, w.Close())
	var got list
	result, err := archive.Extract(t.Context(), bytes.NewReader(buf.Bytes()), int64(buf.Len()), archive.Options{Limits: limits()}, each(func(e archive.Entry) error {
		if e.HardLink {
			return archive.ErrNoTarget
		}
		return got.Add(e)
	}))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, 151, result.SkippedTotal)
	err = extract(write(t, "tar", []archive.Entry{{Name: "link", HardLink: true, Target: "none"}}), limits(), each(func(archive.Entry) error { return archive.ErrNoTarget }))
	require.Equal(t, v1.InvalidArchive, code(err))
	require.EqualError(t, err, `Archive has a hard link to a file that it does not contain: "none"`)
}
