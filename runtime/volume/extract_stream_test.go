package volume_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestExtractCut: an archive that is cut off while it arrives leaves nothing, wherever that is, and the error is that
// of the connection.
func TestExtractCut(t *testing.T) {
	broken := errors.New("the connection is gone")
	for _, format := range append(v1.Formats(), "tar.zst") {
		b := newBox(t, options())
		b.put(t, "out/mine", "mine")
		whole := pack(t, format, []part{{name: "a", data: strings.Repeat("some text ", 500)}, file("b/c"), folder("d/"), link("l", "a")})
		for cut := 0; cut <= len(whole); cut += 1 + len(whole)/40 {
			src := io.MultiReader(bytes.NewReader(whole[:cut]), iotest.ErrReader(broken))
			_, err := b.Extract(t.Context(), id, src, v1.Decompression{Destination: "out"})
			require.ErrorIs(t, err, broken, "%s after %d bytes", format, cut)
			require.Equal(t, []string{"out", "out/mine"}, b.names(t), format)
			noTemps(t, b)
		}
		used := b.Used(id).Bytes
		_, err := b.Extract(t.Context(), id, bytes.NewReader(whole), v1.Decompression{Destination: "out"})
		require.NoError(t, err)
		require.Equal(t, []string{"out", "out/a", "out/b", "out/b/c", "out/d", "out/l", "out/mine"}, b.names(t), format)
		require.Greater(t, b.Used(id).Bytes, used)
		noTemps(t, b)
	}
}

// TestExtractWithinLimit: what arrives, and a zip until it is extracted, counts for the limit of the volume.
func TestExtractWithinLimit(t *testing.T) {
	noise := make([]byte, 256<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for _, format := range []string{"tar", "zip"} {
		b := newBox(t, options())
		data := pack(t, format, []part{{name: "a", data: string(noise)}})
		extract := func(limit int64) error {
			b.SetLimit(id, limit, v1.Usage{})
			_, err := b.Extract(t.Context(), id, bytes.NewReader(data), v1.Decompression{Destination: "."})
			return err
		}
		least := int64(len(noise)) + 8192
		if format == "zip" {
			require.Equal(t, "size_limit_exceeded", code(extract(least)), "there is no space to keep the zip beside its file")
			least += int64(len(data)) + 4096
		}
		require.Equal(t, "size_limit_exceeded", code(extract(least-16<<10)), format)
		require.Empty(t, b.names(t))
		noTemps(t, b)
		require.NoError(t, extract(least), format)
		require.Equal(t, string(noise), b.get(t, "a"))
		require.LessOrEqual(t, b.Used(id).Bytes, int64(len(noise))+8192, "the zip is not counted any more")
	}
}

// TestExtractedFoldersCount: each folder of an archive takes a block of the limit, also an empty one.
func TestExtractedFoldersCount(t *testing.T) {
	b := newBox(t, options())
	var folders []part
	for n := range 20 {
		folders = append(folders, folder(fmt.Sprint(n, "/")))
	}
	data := pack(t, "tar", folders)
	b.SetLimit(id, 10*4096, v1.Usage{})
	_, err := b.Extract(t.Context(), id, bytes.NewReader(data), v1.Decompression{Destination: "."})
	require.Equal(t, "size_limit_exceeded", code(err))
	require.Empty(t, b.names(t))
	noTemps(t, b)
	b.SetLimit(id, 30*4096, v1.Usage{})
	_, err = b.Extract(t.Context(), id, bytes.NewReader(data), v1.Decompression{Destination: "."})
	require.NoError(t, err)
	require.Len(t, b.names(t), 20)
}

// TestExtractCancelled: an extraction ends with its context, while nothing arrives too.
func TestExtractCancelled(t *testing.T) {
	b := newBox(t, options())
	data := pack(t, "tar", []part{{name: "a", data: strings.Repeat("x", 1<<20)}})
	ctx, cancel := context.WithCancel(t.Context())
	src := io.MultiReader(bytes.NewReader(data[:len(data)/2]), readFunc(func([]byte) (int, error) {
		cancel()
		return 1, nil
	}))
	_, err := b.Extract(ctx, id, src, v1.Decompression{Destination: "."})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, b.names(t))
	noTemps(t, b)
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestExtractIntoFile: the refusal comes before anything is read.
func TestExtractIntoFile(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "f", "mine")
	_, err := b.Extract(t.Context(), id, iotest.ErrReader(errors.New("it was read")), v1.Decompression{Destination: "f"})
	require.EqualError(t, err, "File already exists at path: f")
	require.NoError(t, os.Remove(filepath.Join(b.dir, "f")))
}
