package node_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/paneltest"
)

// archiveOf returns a tar.gz of files.
func archiveOf(t *testing.T, content map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	files := tar.NewWriter(z)
	for name, text := range content {
		require.NoError(t, files.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}))
		_, err := files.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	require.NoError(t, z.Close())
	return b.String()
}

// old writes a backup as wings has made it.
func (w *world) old(t *testing.T, path string) (content string) {
	t.Helper()
	content = archiveOf(t, map[string]string{"world/level.dat": "old"})
	path = filepath.Join(w.root, "backups", path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return content
}

// TestOldBackups: the panel's users download, restore and delete backups that wings has made.
func TestOldBackups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	content := w.old(t, alpha+"/"+backupUUID(1)+".tar.gz")
	w.old(t, backupUUID(2)+".tar.gz")
	w.old(t, beta+"/"+backupUUID(3)+".tar.gz")
	download := func(n int) paneltest.Answer {
		t.Helper()
		return w.Do(t, "GET", "/download/backup?token="+link(t, "backup-download", map[string]any{"backup_uuid": backupUUID(n)}), nil, "Authorization", "")
	}
	a := download(1)
	require.Equal(t, 200, a.Status)
	require.Equal(t, content, a.Body)
	require.Equal(t, `attachment; filename="`+backupUUID(1)+`.tar.gz"`, a.Header.Get("Content-Disposition"))
	require.Equal(t, fmt.Sprint(len(content)), a.Header.Get("Content-Length"))
	require.Equal(t, 200, download(2).Status)
	require.Equal(t, 404, download(3).Status, "it is another server's")
	require.Equal(t, 404, w.Do(t, "DELETE", atAlpha+"/backup/..%2F"+backupUUID(2), nil).Status)

	for i, truncate := range []bool{false, true} {
		w.write(t, "world/level.dat", "newer")
		w.write(t, "more.dat", "more")
		require.Equal(t, 202, w.restore(t, i+1, truncate).Status)
		require.JSONEq(t, `{"successful":true}`, w.panel.Await(t, "POST /backups/"+backupUUID(i+1)+"/restore", 1).Body)
		w.unmarked(t)
		more := "more"
		if truncate {
			more = ""
		}
		w.files(t, map[string]string{"world/level.dat": "old", "more.dat": more})
	}

	// The files stay if the archive ends too early.
	path := filepath.Join(w.root, "backups", alpha, backupUUID(4)+".tar.gz")
	require.NoError(t, os.WriteFile(path, []byte(content[:len(content)-9]), 0o600))
	w.write(t, "more.dat", "more")
	require.Equal(t, 202, w.restore(t, 4, true).Status)
	require.JSONEq(t, `{"successful":false}`, w.panel.Await(t, "POST /backups/"+backupUUID(4)+"/restore", 1).Body)
	w.unmarked(t)
	w.files(t, map[string]string{"world/level.dat": "old", "more.dat": "more", ".restore-part-" + backupUUID(4): ""})

	// The bridge is killed while it restores: the next one does it again.
	w.write(t, "world/level.dat", "newer")
	w.stop()
	var list struct{ Volumes []v1.VolumeView }
	w.berth.Get(t, "/volumes", &list)
	v := list.Volumes[0]
	v.Labels["wings.restore."+backupUUID(1)] = "wings-" + v1.RestoreMerge
	_, err := w.berth.API.Volumes().Change(t.Context(), v.VolumeID, v1.VolumeChange{Labels: &v.Labels})
	require.NoError(t, err)
	w.run(t)
	w.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", 2)
	w.unmarked(t)
	w.files(t, map[string]string{"world/level.dat": "old"})

	w.Want(t, 204, "DELETE", atAlpha+"/backup/"+backupUUID(2), nil)
	require.Equal(t, 404, download(2).Status)
	w.Want(t, 404, "DELETE", atAlpha+"/backup/"+backupUUID(2), nil)
	w.Want(t, 204, "DELETE", atAlpha+"/deleteAllBackups", nil)
	require.NoFileExists(t, filepath.Join(w.root, "backups", alpha, backupUUID(1)+".tar.gz"))
	require.FileExists(t, filepath.Join(w.root, "backups", beta, backupUUID(3)+".tar.gz"))
}
