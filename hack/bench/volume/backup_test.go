package volume_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/runtime/volume"
)

// BenchmarkBackup writes 200 MiB to a file as a tar.zst: by GNU tar and one thread of zstd, and
// by berth, which computes a checksum too, on one thread of low priority.
func BenchmarkBackup(b *testing.B) {
	m, dir := open(b)
	mixed(b, dir)
	out := filepath.Join(b.TempDir(), "out.tar.zst")
	settle := func() { shell(b, "sync -f "+filepath.Dir(out)) } // what the one before has left to write
	took, used := turns(b,
		contender{name: "gnu", before: settle, do: func() {
			shell(b, "tar -C "+dir+" -cf - . | zstd -1 -T1 -q -f -o "+out)
		}},
		contender{name: "berth", before: settle, do: func() { backup(b, m, out) }})
	table.Add(b, table.Row{Measure: "backup of 200 MiB, against GNU", Unit: "MiB/s", Berth: rates(took[1]), Floor: rates(took[0]), Goal: table.AtLeast(0.8)})
	table.Add(b, table.Row{Measure: "backup of 200 MiB, against GNU, CPU", Unit: "ms", Berth: used[1], Floor: used[0], Goal: table.AtMost(1 / 0.8)})
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
	took, used := turns(b,
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
				require.NoError(b, m.Restore(b.Context(), id, f, a, v1.RestoreOptions{Mode: v1.RestoreReplace}))
			}})
	table.Add(b, table.Row{Measure: "restore of 200 MiB, against GNU", Unit: "MiB/s", Berth: rates(took[1]), Floor: rates(took[0]), Goal: table.AtLeast(0.8)})
	table.Add(b, table.Row{Measure: "restore of 200 MiB, against GNU, CPU", Unit: "ms", Berth: used[1], Floor: used[0], Goal: table.AtMost(1 / 0.8)})
}

// rates returns the MiB a second of 200 MiB that took so many milliseconds.
func rates(took []float64) (list []float64) {
	for _, ms := range took {
		list = append(list, 200*1000/ms)
	}
	return list
}

// backup writes the volume to the file out.
func backup(b *testing.B, m *volume.Manager, out string) v1.SnapshotArchive {
	f, err := os.Create(out)
	require.NoError(b, err)
	defer f.Close()
	got, err := m.Snapshot(b.Context(), id, f, v1.SnapshotOptions{})
	require.NoError(b, err)
	require.Empty(b, got.Skipped)
	return v1.SnapshotArchive{Checksum: got.Checksum, Size: got.Size, Bytes: got.Bytes}
}

// shell runs a pipeline, which must succeed in all its parts.
func shell(b *testing.B, line string) {
	out, err := exec.Command("bash", "-c", "set -o pipefail; "+line).CombinedOutput()
	require.NoError(b, err, string(bytes.TrimSpace(out)))
}
