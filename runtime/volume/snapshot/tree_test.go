package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/snapshot"
	"berth/runtime/volume/walk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the folder at path.
func open(t testing.TB, path string) *walk.Dir {
	t.Helper()
	r, err := os.OpenRoot(path)
	require.NoError(t, err)
	defer r.Close()
	d, err := walk.OpenDir(r, ".")
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// write writes the tree at dir and returns the archive, and how it is identified.
func write(t testing.TB, dir string, opt snapshot.Options) ([]byte, v1.Snapshot, v1.SnapshotArchive) {
	t.Helper()
	var out bytes.Buffer
	if opt.NameBytes == 0 {
		opt.NameBytes = 1 << 20
	}
	opt.TempDir = os.TempDir()
	got, err := snapshot.Write(context.Background(), open(t, dir), &out, opt)
	require.NoError(t, err)
	return out.Bytes(), got, identify(out.Bytes(), got.Bytes)
}

func identify(archive []byte, bytes int64) v1.SnapshotArchive {
	sum := sha256.Sum256(archive)
	return v1.SnapshotArchive{Checksum: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(archive)), Bytes: bytes}
}

// extract extracts an archive into the folder "tree" of a new directory, and returns it.
func extract(t testing.TB, archive []byte, a v1.SnapshotArchive) (dir string, err error) {
	t.Helper()
	parent := t.TempDir()
	dir = filepath.Join(parent, "tree")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir, snapshot.Extract(context.Background(), bytes.NewReader(archive), a, open(t, parent), "tree", snapshot.ExtractOptions{})
}

// describe returns a line for each entry below dir: everything that an archive keeps.
// It names the extents of a file that has holes if holes is true.
func describe(t testing.TB, dir string, holes bool) (lines []string) {
	t.Helper()
	first := map[uint64]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, p)
		require.NoError(t, err)
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(p, &st))
		line := fmt.Sprintf("%q %o %d:%d %d.%09d", rel, st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			if st.Nlink > 1 && first[st.Ino] != "" {
				lines = append(lines, line+" = "+first[st.Ino])
				return nil
			}
			first[st.Ino] = rel
			line += fmt.Sprintf(" %d links %d bytes %s", st.Nlink, st.Size, content(t, p, st.Size, holes))
		case unix.S_IFLNK:
			target, err := os.Readlink(p)
			require.NoError(t, err)
			line += " -> " + target
		}
		lines = append(lines, line)
		return nil
	}))
	return lines
}

// content describes the data of a file, and where it is.
func content(t testing.TB, p string, size int64, holes bool) string {
	f, err := os.Open(p)
	require.NoError(t, err)
	defer f.Close()
	var extents []string
	hash := sha256.New()
	for off := int64(0); off < size; {
		begin, err := f.Seek(off, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) {
			break
		}
		require.NoError(t, err)
		end, err := f.Seek(begin, unix.SEEK_HOLE)
		require.NoError(t, err)
		data := make([]byte, end-begin)
		_, err = f.ReadAt(data, begin)
		require.NoError(t, err)
		fmt.Fprintf(hash, "%d:", begin)
		hash.Write(data)
		extents = append(extents, fmt.Sprintf("%d+%d", begin, end-begin))
		off = end
	}
	if !holes {
		whole, err := os.ReadFile(p)
		require.NoError(t, err)
		return fmt.Sprintf("%x", sha256.Sum256(whole))
	}
	return fmt.Sprintf("%x %s", hash.Sum(nil), strings.Join(extents, " "))
}

// sameTree compares two trees.
func sameTree(t require.TestingT, want, got []string) {
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
}
