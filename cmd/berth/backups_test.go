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
	receive := func(r io.Reader) error {
		err := a.Receive(t.Context(), b, r)
		files, _ := os.ReadDir(dir)
		require.Equal(t, err == nil, len(files) == 1, "%v %v", files, err)
		require.Equal(t, err == nil, a.Arrived(b))
		return err
	}
	require.False(t, a.Arrived(b))
	for _, lie := range []string{"", "archiv", "archivf", "archives", strings.Repeat("x", 1<<20)} {
		require.ErrorIs(t, receive(strings.NewReader(lie)), &v1.Error{Code: v1.InvalidArchive}, lie)
	}
	require.ErrorIs(t, receive(io.MultiReader(strings.NewReader("arch"), iotest.ErrReader(io.ErrUnexpectedEOF))), io.ErrUnexpectedEOF)
	full = v1.ErrDiskFull
	require.ErrorIs(t, receive(strings.NewReader("archive")), full)
	full = nil
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.Receive(ended, b, strings.NewReader("archive")), context.Canceled)
	require.NoError(t, receive(strings.NewReader("archive")))
	text, err := os.ReadFile(filepath.Join(dir, "b1.tar.zst"))
	require.NoError(t, err)
	require.Equal(t, "archive", string(text))

	_, _, err = movedArchives{a.local}.Open(t.Context(), "none", 0)
	require.ErrorIs(t, err, &v1.Error{Code: v1.BackupNotFound})
	b.Spec.Target = v1.TargetS3
	require.ErrorIs(t, a.Receive(t.Context(), b, nil), &v1.Error{Code: v1.BackupNotFound}, "no bucket")
	require.False(t, a.Arrived(b))
}

// TestRoomForArchives: files and archives share the space if they lie on one file system.
func TestRoomForArchives(t *testing.T) {
	base := t.TempDir()
	m, err := volume.New(filepath.Join(base, "volumes"), volume.Options{UID: -1, GID: -1})
	require.NoError(t, err)
	a := archives{volumes: m, path: filepath.Join(base, "backups")}
	require.NoError(t, a.Room(1, 0))
	require.NoDirExists(t, a.path)
	require.NoError(t, a.Room(1, 1))
	least, most := int64(1), int64(1)<<60 // the largest size of files for which there is space
	for least < most-1<<30 {
		if size := (least + most) / 2; a.Room(size, 0) == nil {
			least = size
		} else {
			most = size
		}
	}
	require.NoError(t, a.Room(least/4, least/4))
	require.True(t, errors.Is(a.Room(least*3/4, least*3/4), v1.ErrDiskFull))
}
