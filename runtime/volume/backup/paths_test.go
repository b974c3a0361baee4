package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
)

// tangled is a tree whose names begin with one another, with links between its folders.
func tangled(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"a/b/file", "a/b/more/file", "a/bc", "a.b", "a/c", "z/file"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o640))
	}
	require.NoError(t, os.Link(filepath.Join(dir, "a/c"), filepath.Join(dir, "z/hard")))
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "z/link")))
	return dir
}

func extractPaths(t testing.TB, archive []byte, a v1.SnapshotArchive, paths ...string) (dir string, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir, backup.Extract(context.Background(), bytes.NewReader(archive), a, open(t, dir), backup.ExtractOptions{Paths: paths})
}

// TestExtractPaths: what is selected is as it was, and nothing else is there but the folders above it.
func TestExtractPaths(t *testing.T) {
	dir := tangled(t)
	archive, _, a := write(t, dir, backup.Options{})
	all := describe(t, dir)
	for name, c := range map[string]struct {
		paths []string
		want  []string // names
	}{
		"a file":                     {[]string{"a/bc"}, []string{".", "a", "a/bc"}},
		"a folder":                   {[]string{"a/b"}, []string{".", "a", "a/b", "a/b/file", "a/b/more", "a/b/more/file"}},
		"two, one in the other":      {[]string{"a/b/more/file", "a/b/more"}, []string{".", "a", "a/b", "a/b/more", "a/b/more/file"}},
		"a link":                     {[]string{"z/link"}, []string{".", "z", "z/link"}},
		"a hard link with its other": {[]string{"z/hard", "a/c"}, []string{".", "a", "a/c", "z", "z/hard"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := extractPaths(t, archive, a, c.paths...)
			require.NoError(t, err)
			want := slices.DeleteFunc(slices.Clone(all), func(line string) bool {
				return !slices.ContainsFunc(c.want, func(name string) bool { return strings.HasPrefix(line, strconv.Quote(name)+" ") })
			})
			require.Len(t, want, len(c.want))
			sameTree(t, want, describe(t, got))
		})
	}
	for path, text := range map[string]string{
		"a/d":      "Backup does not have the path: a/d",
		"a/bc/d":   "Backup does not have the path: a/bc/d",
		"z/link/x": "Backup does not have the path: z/link/x",
		"z/hard":   "z/hard is a hard link of a/c: restore that one with it",
	} {
		_, err := extractPaths(t, archive, a, "a/b", path)
		require.EqualError(t, err, text)
	}
	damaged := slices.Clone(archive)
	damaged[len(damaged)-1] ^= 1
	_, err := extractPaths(t, damaged, a, "a/bc")
	refused(t, err)
}

// TestHostileArchivesByPaths: a selection refuses what it reads of what Write never produces, and a list as well.
func TestHostileArchivesByPaths(t *testing.T) {
	for name, members := range hostile {
		archive := build(t, members...)
		dir, _ := extractPaths(t, archive, identify(archive, 4<<20), "a/b", "b/passwd")
		list, err := os.ReadDir(filepath.Dir(dir))
		require.NoError(t, err)
		require.Len(t, list, 1, name)
		for _, line := range describe(t, dir) {
			require.NotContains(t, line, "passwd", name)
		}
		for _, folder := range []string{".", "a"} {
			_ = backup.List(t.Context(), bytes.NewReader(archive), identify(archive, 4<<20), folder, func(name string, _ *tar.Header) error {
				require.NotContains(t, name, "/")
				require.NotContains(t, []string{"", ".", ".."}, name)
				return nil
			})
		}
	}
}

func TestList(t *testing.T) {
	archive, _, a := write(t, tangled(t), backup.Options{})
	of := func(folder string) (names []string, err error) {
		err = backup.List(t.Context(), bytes.NewReader(archive), a, folder, func(name string, _ *tar.Header) error {
			names = append(names, name)
			return nil
		})
		slices.Sort(names)
		return names, err
	}
	for folder, want := range map[string]string{".": "a a.b z", "a": "b bc c", "a/b": "file more", "z": "file hard link"} {
		got, err := of(folder)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(got, " "), folder)
	}
	for folder, text := range map[string]string{
		"a/d":    "Backup does not have the path: a/d",
		"z/link": "Backup has a file at the path, not a folder: z/link",
	} {
		_, err := of(folder)
		require.EqualError(t, err, text)
	}
	enough := errors.New("enough")
	require.ErrorIs(t, backup.List(t.Context(), bytes.NewReader(archive), a, ".", func(string, *tar.Header) error { return enough }), enough)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, backup.List(ctx, bytes.NewReader(archive), a, ".", nil), context.Canceled)
	require.ErrorContains(t, backup.List(t.Context(), bytes.NewReader(archive[:len(archive)/2]), a, "z", nil), "damaged")
}

// TestListEndsWithItsFolder: what follows a folder in the archive is not read.
func TestListEndsWithItsFolder(t *testing.T) {
	members := []member{rootMember, folderMember("a"), fileMember("a/x"), folderMember("b")}
	for range 8 {
		members = append(members, member{tar.TypeReg, "b/" + strings.Repeat("n", 200), strings.Repeat("0123456789", 1<<20)})
	}
	archive := build(t, members...)
	r := &counting{r: bytes.NewReader(archive)}
	require.NoError(t, backup.List(t.Context(), r, identify(archive, 1<<30), "a", func(string, *tar.Header) error { return nil }))
	require.Less(t, r.n, len(archive)/2)
}

type counting struct {
	r io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p[:min(len(p), 512)])
	c.n += n
	return n, err
}
