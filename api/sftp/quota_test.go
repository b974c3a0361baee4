package sftp

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	client "github.com/pkg/sftp"
	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
)

func limited(t *testing.T, limit int64) *harness {
	h := newHarness(t)
	_, err := h.volumes.Scan(t.Context(), h.volume)
	require.NoError(t, err)
	h.volumes.SetLimit(h.volume, h.volumes.Used(h.volume).Bytes+limit, v1.Usage{})
	return h
}

func TestQuota(t *testing.T) {
	const mib = 1 << 20
	h := limited(t, 4*mib)
	c := h.open()
	used := h.volumes.Used(h.volume).Bytes
	put := func(name string, size int) error {
		f, err := c.Create(name)
		require.NoError(t, err)
		_, err = f.ReadFrom(bytes.NewReader(make([]byte, size)))
		if err == nil { // while ext4 writes blocks that it had delayed, it counts them twice
			written, openErr := os.Open(filepath.Join(h.dir, name))
			require.NoError(t, openErr)
			require.NoError(t, errors.Join(written.Sync(), written.Close()))
		}
		return errors.Join(err, f.Close())
	}
	require.ErrorContains(t, put("big", 6*mib), "quota exceeded")
	require.NoFileExists(t, filepath.Join(h.dir, "big"), "a new file is removed")
	require.Equal(t, used, h.volumes.Used(h.volume).Bytes, "what it held is free")
	require.NoError(t, put("fits", 4*mib))
	require.Equal(t, used+4*mib, h.volumes.Used(h.volume).Bytes)
	_, err := c.Create("more")
	require.ErrorContains(t, err, "quota exceeded")
	require.ErrorContains(t, c.Mkdir("more"), "quota exceeded")
	require.ErrorContains(t, c.Symlink("fits", "more"), "quota exceeded")

	require.NoError(t, put("fits", 4*mib), "a file that is written again occupies what it did")
	f, err := c.OpenFile("fits", os.O_WRONLY)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 8*mib)
	require.ErrorContains(t, err, "quota exceeded", "an offset counts")
	require.ErrorContains(t, f.Truncate(8*mib), "quota exceeded")
	require.NoError(t, f.Close())
	require.Len(t, h.read("fits"), 4*mib, "an old file stays")
	require.NoError(t, c.Remove("fits"))
	require.Equal(t, used, h.volumes.Used(h.volume).Bytes)

	space, err := c.StatVFS(".")
	require.NoError(t, err)
	require.Equal(t, uint64((used+4*mib)/4096), space.Blocks)
	require.Equal(t, uint64(1024), space.Bavail)
}

func TestQuotaOfHoles(t *testing.T) {
	const mib = 1 << 20
	h := limited(t, 4*mib)
	c := h.open()
	for i := range 4 {
		name := fmt.Sprint("sparse", i)
		require.NoError(t, closed(c.Create(name)))
		require.NoError(t, c.Truncate(name, 3*mib))
	}
	var err error
	for i := range 4 {
		f, opened := c.OpenFile(fmt.Sprint("sparse", i), os.O_WRONLY)
		require.NoError(t, opened)
		for at := 0; at < 3*mib && err == nil; at += mib / 4 {
			_, err = f.WriteAt(bytes.Repeat([]byte("x"), mib/4), int64(at))
		}
		require.NoError(t, f.Close())
	}
	require.ErrorContains(t, err, "quota exceeded")
	use, err := h.volumes.Scan(t.Context(), h.volume)
	require.NoError(t, err)
	require.LessOrEqual(t, use.Bytes, int64(5*mib))
}

func TestQuotaOfUnlinkedFiles(t *testing.T) {
	const mib = 1 << 20
	h := limited(t, 4*mib)
	c := h.open()
	f, err := c.Create("file")
	require.NoError(t, err)
	_, err = f.ReadFrom(bytes.NewReader(make([]byte, 3*mib)))
	require.NoError(t, err)
	require.NoError(t, c.Remove("file"))
	for range 2 { // before and after a scan
		second, err := c.Create("second")
		require.NoError(t, err)
		_, err = second.ReadFrom(bytes.NewReader(make([]byte, 2*mib)))
		require.ErrorContains(t, err, "quota exceeded")
		second.Close()
		_, err = h.volumes.Scan(t.Context(), h.volume)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	_, err = h.volumes.Scan(t.Context(), h.volume)
	require.NoError(t, err)
	second, err := c.Create("second")
	require.NoError(t, err)
	_, err = second.ReadFrom(bytes.NewReader(make([]byte, 2*mib)))
	require.NoError(t, err)
}

func TestHandlesAreBounded(t *testing.T) {
	most := limit.SFTPFiles().Object
	h := newHarnessWith(t, func(s *Server) { // 10 more, and a tenth for the administrator
		s.limits.handles = limit.NewSlots(func() limit.Bounds { return limit.Bounds{All: most + 22, Tenant: most + 22, Object: most} })
	})
	h.write("file", "text")
	c := h.open()
	var files []*client.File
	for {
		f, err := c.Open("file")
		if err != nil {
			require.ErrorContains(t, err, "too many open files")
			break
		}
		files = append(files, f)
	}
	require.Len(t, files, most)
	_, err := c.ReadDir(".")
	require.ErrorContains(t, err, "too many open files")
	require.NoError(t, files[0].Close())
	_, err = c.ReadDir(".")
	require.NoError(t, err, "the session goes on")
	other := h.open()
	for range 12 {
		var f *client.File
		f, err = other.Open("file")
		files = append(files, f)
	}
	require.ErrorContains(t, err, "the host has too many open files")
	c.Close()
	h.eventually("its handles are free", func() bool {
		f, err := other.Open("file")
		return err == nil && f.Close() == nil
	})
}
