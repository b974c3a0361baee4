package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/blob"
	"berth/runtime/volume"
)

// TestReceivedArchives: an archive counts once it is whole and the one that was announced; nothing is left of another one.
func TestReceivedArchives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	var full error
	a := archives{targets: targets{local: blob.NewDirectory(dir)}, path: dir, free: func(v1.Target) error { return full }}
	b := v1.ArrivalBackup{BackupID: "b1", Spec: v1.BackupSpec{BackupRequest: v1.BackupRequest{Target: v1.TargetLocal}},
		Status: v1.BackupStatus{Size: 7, Checksum: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("archive")))}}
	arrived := func(want int64, whole bool) {
		t.Helper()
		stored, all := a.Arrived(b)
		require.Equal(t, []any{want, whole}, []any{stored, all})
	}
	receive := func(offset int64, r io.Reader) error { return a.Receive(t.Context(), b, offset, r) }
	arrived(0, false)
	for _, lie := range []string{"archivf", "archives", strings.Repeat("x", 1<<20)} {
		require.ErrorIs(t, receive(0, strings.NewReader(lie)), &v1.Error{Code: v1.InvalidArchive}, lie)
		arrived(0, false)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files)
	}
	require.ErrorIs(t, receive(0, io.MultiReader(strings.NewReader("ar"), iotest.ErrReader(io.ErrUnexpectedEOF))), io.ErrUnexpectedEOF)
	arrived(2, false)
	require.NoError(t, receive(2, strings.NewReader("ch")))
	arrived(4, false)
	require.ErrorIs(t, receive(3, strings.NewReader("hive")), &v1.Error{Code: v1.Unavailable})
	full = v1.ErrDiskFull
	require.ErrorIs(t, receive(4, strings.NewReader("ive")), full)
	full = nil
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.Receive(ended, b, 4, strings.NewReader("")), context.Canceled)
	arrived(4, false)
	reader := priority{Reader: strings.NewReader("ive"), t: t}
	require.NoError(t, receive(4, &reader))
	arrived(7, true)
	text, err := os.ReadFile(filepath.Join(dir, "b1.tar.zst"))
	require.NoError(t, err)
	require.Equal(t, "archive", string(text))

	var sent strings.Builder
	require.NoError(t, movedArchives{a.local}.Send(t.Context(), b, 4, &priority{Writer: &sent, t: t}))
	require.Equal(t, "ive", sent.String())
	other := b
	other.Status.Size = 8
	require.ErrorIs(t, movedArchives{a.local}.Send(t.Context(), other, 0, &sent), &v1.Error{Code: v1.InvalidArchive})
	require.ErrorIs(t, movedArchives{a.local}.Send(t.Context(), v1.ArrivalBackup{BackupID: "none"}, 0, &sent), &v1.Error{Code: v1.BackupNotFound})
	b.Spec.Target = v1.TargetS3
	require.ErrorIs(t, a.Receive(t.Context(), b, 0, nil), &v1.Error{Code: v1.BackupNotFound}, "no bucket")
	arrived(0, false)
}

// priority fails the test unless its thread has the lowest priority.
type priority struct {
	io.Reader
	io.Writer
	t *testing.T
}

func (p *priority) check() {
	p.t.Helper()
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	require.NoError(p.t, err)
	require.Equal(p.t, 1, nice, "20 less the lowest one, 19")
}

func (p *priority) Read(b []byte) (int, error)  { p.check(); return p.Reader.Read(b) }
func (p *priority) Write(b []byte) (int, error) { p.check(); return p.Writer.Write(b) }

// TestRoomForArchives: files and archives share the space if they lie on one file system.
func TestRoomForArchives(t *testing.T) {
	base := t.TempDir()
	m, err := volume.New(filepath.Join(base, "volumes"), volume.Options{UID: -1, GID: -1})
	require.NoError(t, err)
	a := archives{volumes: m, path: filepath.Join(base, "backups")}
	require.NoError(t, a.CheckSpace(1, 0))
	require.NoDirExists(t, a.path)
	require.NoError(t, a.CheckSpace(1, 1))
	least, most := int64(1), int64(1)<<60 // the largest size of files for which there is space
	for least < most-1<<30 {
		if size := (least + most) / 2; a.CheckSpace(size, 0) == nil {
			least = size
		} else {
			most = size
		}
	}
	require.NoError(t, a.CheckSpace(least/4, least/4))
	require.True(t, errors.Is(a.CheckSpace(least*3/4, least*3/4), v1.ErrDiskFull))
}
