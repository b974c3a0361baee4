package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the folder at path.
func open(t testing.TB, path string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(path)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// write writes the tree at dir and returns the archive, and how it is identified.
func write(t testing.TB, dir string, opt backup.Options) ([]byte, v1.Snapshot, v1.SnapshotArchive) {
	t.Helper()
	var out bytes.Buffer
	if opt.NameBytes == 0 {
		opt.NameBytes = 1 << 20
	}
	got, err := backup.Write(context.Background(), open(t, dir), &out, opt)
	require.NoError(t, err)
	a := identify(out.Bytes(), got.Bytes)
	require.Equal(t, a, v1.SnapshotArchive{Checksum: got.Checksum, Size: got.Size, Bytes: got.Bytes})
	return out.Bytes(), got, a
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
	return dir, backup.Extract(context.Background(), bytes.NewReader(archive), a, open(t, dir), backup.ExtractOptions{})
}

// describe returns a line for each entry below dir: everything that an archive keeps.
func describe(t testing.TB, dir string) (lines []string) {
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
			line += fmt.Sprintf(" %d links %d bytes %s", st.Nlink, st.Size, digest(t, p))
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

// digest describes the content of a file, whose holes read as zeros.
func digest(t testing.TB, p string) string {
	f, err := os.Open(p)
	require.NoError(t, err)
	defer f.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	require.NoError(t, err)
	return hex.EncodeToString(hash.Sum(nil))
}

// sameTree compares two trees.
func sameTree(t require.TestingT, want, got []string) {
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
}
