package archive_test

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
)

// FuzzExtract extracts arbitrary bytes. Names must be clean and local, contents
// within the limits, and every error must be an API error.
func FuzzExtract(f *testing.F) {
	for _, format := range allFormats() {
		entries := []archive.Entry{
			{Name: "folder", Mode: fs.ModeDir | 0o755, Time: made}, file("folder/file", "some text"),
			{Name: "link", Mode: fs.ModeSymlink | 0o777, Time: made, Target: "folder"},
		}
		if archive.HardLinks(format) {
			entries = append(entries, archive.Entry{Name: "hard", HardLink: true, Target: "folder/file", Time: made})
		}
		f.Add(write(f, format, entries))
		f.Add(write(f, format, []archive.Entry{file("../up", "x")}))
	}
	f.Add(forgedZip(3, "name", 3, 150))
	f.Add(forgedZip(3, "name", 1<<40, 1<<40))
	limits := archive.Limits{Bytes: 64 << 10, Entries: 20, Depth: 5, Ratio: 1000, ZipDirectoryBytes: 2000}
	fuzz := func(t *testing.T, data []byte, extract func([]byte, archive.Limits, archive.Destination) error) {
		entries, bytes := 0, int64(0)
		err := extract(data, limits, each(func(e archive.Entry) error {
			entries++
			require.Equal(t, path.Clean(e.Name), e.Name)
			require.True(t, filepath.IsLocal(e.Name), e.Name)
			if e.Content == nil {
				return nil
			}
			n, err := io.Copy(io.Discard, e.Content)
			bytes += n
			return err
		}))
		require.LessOrEqual(t, entries, limits.Entries)
		require.LessOrEqual(t, bytes, limits.Bytes+bufferSlack)
		var refused *v1.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzz(t, data, extract)
		fuzz(t, data, extractStream)
	})
}

// bufferSlack is how many bytes a reader may return with the error that refuses them.
const bufferSlack = 32 << 10
