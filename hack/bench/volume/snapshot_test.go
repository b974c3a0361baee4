package volume_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// BenchmarkBackup writes 200 MiB to a file as a tar.zst: by GNU tar and zstd, and by
// berth, which also computes the checksums of each file and of the whole.
func BenchmarkBackup(b *testing.B) {
	m, dir := open(b)
	mixed(b, dir)
	out := filepath.Join(b.TempDir(), "out.tar.zst")
	turns(b,
		contender{name: "gnu", do: func() {
			shell(b, "tar -C "+dir+" -cf - . | zstd -1 -T0 -q -f -o "+out)
		}},
		contender{name: "berth", do: func() { backup(b, m, out) }})
	shell(b, "tar --zstd -tf "+out+" > /dev/null")
}

// BenchmarkRestore extracts the backup of 200 MiB: by GNU tar and zstd, which writes
// everything to the disk with sync -f as berth does, and by berth, which verifies the
// checksums and replaces the volume's content.
func BenchmarkRestore(b *testing.B) {
	m, dir := open(b)
	mixed(b, dir)
	out := filepath.Join(b.TempDir(), "out.tar.zst")
	a := backup(b, m, out)
	to := filepath.Join(b.TempDir(), "gnu")
	turns(b,
		contender{name: "gnu",
			before: func() {
				require.NoError(b, os.RemoveAll(to))
				require.NoError(b, os.Mkdir(to, 0o755))
			},
			do: func() { shell(b, "zstd -d -q -c "+out+" | tar -C "+to+" -xpf - && sync -f "+to) }},
		contender{name: "berth",
			before: func() { // an empty volume: removing the old tree is not measured
				require.NoError(b, m.Remove(b.Context(), id))
				require.NoError(b, m.Ensure(id))
			},
			do: func() {
				f, err := os.Open(out)
				require.NoError(b, err)
				defer f.Close()
				require.NoError(b, m.Snapshots().Restore(b.Context(), id, f, a, v1.RestoreOptions{Mode: v1.RestoreReplace}))
			}})
}

// backup writes the volume to the file out.
func backup(b *testing.B, m *volume.Manager, out string) v1.SnapshotArchive {
	f, err := os.Create(out)
	require.NoError(b, err)
	defer f.Close()
	sum := sha256.New()
	got, err := m.Snapshots().Write(b.Context(), id, io.MultiWriter(f, sum), v1.SnapshotOptions{})
	require.NoError(b, err)
	require.Empty(b, got.Skipped)
	info, err := f.Stat()
	require.NoError(b, err)
	return v1.SnapshotArchive{Checksum: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: info.Size(), Bytes: got.Bytes}
}

// shell runs a pipeline, which must succeed in all its parts.
func shell(b *testing.B, line string) {
	out, err := exec.Command("bash", "-c", "set -o pipefail; "+line).CombinedOutput()
	require.NoError(b, err, string(bytes.TrimSpace(out)))
}
