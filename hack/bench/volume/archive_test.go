package volume_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/runtime/volume"
)

const id = "11111111-2222-3333-4444-555555555555"

func open(b *testing.B) (*volume.Manager, string) {
	return openWith(b, volume.Options{UID: -1, GID: -1})
}

func openWith(b *testing.B, opt volume.Options) (*volume.Manager, string) {
	m, err := volume.New(b.TempDir(), opt)
	require.NoError(b, err)
	require.NoError(b, m.Ensure(id))
	return m, m.Path(id)
}

// mixed creates a tree of about 200 MiB: text, half-compressible and random files
// of 1 KiB to 4 MiB, like the folder of a game server.
func mixed(b *testing.B, dir string) {
	const want = 200 << 20
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2000)
	for i := range words {
		words[i] = fmt.Sprintf("%x", r.Uint64()>>(r.IntN(40)+8))
	}
	var total int64
	for i := 0; total < want; i++ {
		p := filepath.Join(dir, fmt.Sprintf("d%d/e%d/f%d", i/400, i/40%10, i))
		require.NoError(b, os.MkdirAll(filepath.Dir(p), 0o755))
		size := 1 << (10 + r.IntN(10))
		if i%50 == 0 {
			size = 4 << 20
		}
		data := content(r, words, size, i%4)
		require.NoError(b, os.WriteFile(p, data, 0o644))
		total += int64(len(data))
	}
}

// content returns text, noise, or a mix of both.
func content(r *rand.Rand, words []string, size, kind int) []byte {
	var buf bytes.Buffer
	for buf.Len() < size {
		if kind == 0 || kind == 1 && r.IntN(2) == 0 {
			var noise [64]byte
			for k := range noise {
				noise[k] = byte(r.Uint32())
			}
			buf.Write(noise[:])
			continue
		}
		fmt.Fprintf(&buf, "%s=%s %d\n", words[r.IntN(len(words))], words[r.IntN(len(words))], r.IntN(1000))
	}
	return buf.Bytes()[:size]
}

// extractArchive extracts an archive into the folder out.
func extractArchive(b *testing.B, m *volume.Manager, archive string) {
	_, err := m.Decompress(b.Context(), id, v1.Decompression{Archive: archive, Destination: "out"})
	require.NoError(b, err)
}

// BenchmarkCompress creates a tar.gz of 200 MiB: by GNU tar and gzip -6, and by berth, which also
// syncs it.
func BenchmarkCompress(b *testing.B) {
	m, dir := open(b)
	mixed(b, dir)
	out := filepath.Join(b.TempDir(), "out.tar.gz")
	took, _ := turns(b,
		contender{name: "gnu", do: func() {
			cmd := exec.Command("tar", "-I", "gzip -6", "-cf", out, ".")
			cmd.Dir = dir
			require.NoError(b, cmd.Run())
		}},
		contender{name: "berth", do: func() {
			a, err := m.Compress(b.Context(), id, v1.Compression{Output: "out"})
			require.NoError(b, err)
			require.NoError(b, os.Rename(filepath.Join(dir, a.Path), out))
		}},
	)
	table.Add(b, table.Row{Measure: "tar.gz of 200 MiB, against GNU", Unit: "ms", Berth: took[1], Floor: took[0], Goal: table.AtMost(2)})
}

// BenchmarkZip creates a zip of 20,000 small files: by Info-ZIP, and by berth.
func BenchmarkZip(b *testing.B) {
	m, dir := open(b)
	for i := range 20_000 {
		p := filepath.Join(dir, "src", fmt.Sprint("d", i/500), fmt.Sprint("f", i))
		require.NoError(b, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(b, os.WriteFile(p, fmt.Appendf(nil, "name=%d\nvalue=%x\n", i, i*i*i), 0o644))
	}
	out := filepath.Join(b.TempDir(), "out.zip")
	clean := func() {
		require.NoError(b, os.RemoveAll(out))
		require.NoError(b, os.RemoveAll(filepath.Join(dir, "out.zip")))
	}
	_, used := turns(b,
		contender{name: "zip", before: clean, do: func() {
			cmd := exec.Command("zip", "-qr", out, ".")
			cmd.Dir = filepath.Join(dir, "src")
			require.NoError(b, cmd.Run())
		}},
		contender{name: "berth", before: clean, do: func() {
			_, err := m.Compress(b.Context(), id, v1.Compression{Paths: []string{"src"}, Output: "out", Format: "zip"})
			require.NoError(b, err)
		}},
	)
	table.Add(b, table.Row{Measure: "zip of 20,000 small files, against Info-ZIP, CPU", Unit: "ms", Berth: used[1], Floor: used[0], Goal: table.AtMost(2)})
}

// BenchmarkDecompress extracts a tar.gz of 200 MiB: by GNU tar, and by berth.
func BenchmarkDecompress(b *testing.B) {
	m, dir := open(b)
	src := b.TempDir()
	mixed(b, src)
	archive := filepath.Join(dir, "in.tar.gz")
	require.NoError(b, exec.Command("tar", "-C", src, "-czf", archive, ".").Run())
	out := filepath.Join(dir, "out")
	clean := func() {
		require.NoError(b, os.RemoveAll(out))
		require.NoError(b, exec.Command("sync", "-f", dir).Run())
	}
	took, _ := turns(b,
		contender{name: "gnu", before: clean, do: func() {
			require.NoError(b, os.Mkdir(out, 0o755))
			require.NoError(b, exec.Command("tar", "-C", out, "-xzf", archive).Run())
		}},
		contender{name: "berth", before: clean, do: func() {
			extractArchive(b, m, "in.tar.gz")
		}},
	)
	table.Add(b, table.Row{Measure: "untar of 200 MiB, against GNU", Unit: "ms", Berth: took[1], Floor: took[0], Goal: table.AtMost(1.3)})
}

// BenchmarkUnzip extracts a zip of 200 MiB: by unzip, and by berth.
func BenchmarkUnzip(b *testing.B) {
	m, dir := open(b)
	mixed(b, filepath.Join(dir, "src"))
	a, err := m.Compress(b.Context(), id, v1.Compression{Folder: "src", Output: "in", Format: "zip"})
	require.NoError(b, err)
	out := filepath.Join(dir, "out")
	clean := func() {
		require.NoError(b, os.RemoveAll(out))
		require.NoError(b, exec.Command("sync", "-f", dir).Run())
	}
	took, _ := turns(b,
		contender{name: "unzip", before: clean, do: func() {
			require.NoError(b, exec.Command("unzip", "-q", filepath.Join(dir, a.Path), "-d", out).Run())
		}},
		contender{name: "berth", before: clean, do: func() {
			extractArchive(b, m, a.Path)
		}},
	)
	table.Add(b, table.Row{Measure: "unzip of 200 MiB, against Info-ZIP", Unit: "ms", Berth: took[1], Floor: took[0], Goal: table.AtMost(1.5)})
}
