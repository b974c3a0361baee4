package node_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
)

// folder returns the folder of alpha's volume on the host, which its game can change in any way.
func (w *world) folder(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(w.berth.Data, "*", w.berth.Container(t, alpha).VolumeID))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// TestHostileIgnoreFiles: whatever a server has as the file with what a backup leaves out, the backup is made.
func TestHostileIgnoreFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	file := filepath.Join(w.folder(t), ".pelicanignore")
	text := func(content string) func() error {
		return func() error { return os.WriteFile(file, []byte(content), 0o600) }
	}
	n := 0
	for name, put := range map[string]func() error{
		"long line": text("*.log\n" + strings.Repeat("x", 1025) + "\n"), "bytes": text("*.log\n\xff\xfe\n"), "many bytes": text("*.log\n" + strings.Repeat("\xff/", 500) + "\n"), "zeros": text("*.log\n\x00\x00\n"),
		"returns": text("*.log\nx\ry\n"), "much": text("*.log\n" + strings.Repeat(strings.Repeat("y", 1000)+"\n", 30)), "no pattern": text("*.log\n[\n[a-\n\\\n!\n***/***\n{a,b\n"),
		"pipe": func() error { return syscall.Mkfifo(file, 0o600) }, "outside": func() error { return os.Symlink("/etc/passwd", file) },
		"loop": func() error { return os.Symlink(".pelicanignore", file) }, "folder": func() error { return os.Mkdir(file, 0o700) },
	} {
		n++
		require.NoError(t, os.RemoveAll(file))
		require.NoError(t, put())
		a := w.Do(t, "POST", atAlpha+"/backup", map[string]string{"adapter": "wings", "uuid": backupUUID(n), "ignore": ""})
		require.Equal(t, 202, a.Status, name+": "+a.Body)
		require.Contains(t, w.panel.Await(t, "POST /backups/"+backupUUID(n), 1).Body, `"successful":true`, name)
	}
}

// TestRestoreIsNotAnEarlierOne: folders that a customer has named as a restore names its own are not taken for a restore.
func TestRestoreIsNotAnEarlierOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	for i, name := range []string{"all", "only", "part"} {
		w.old(t, alpha+"/"+backupUUID(i)+".tar.gz")
		w.write(t, "world/level.dat", "newer")
		w.write(t, ".restore-"+name+"-"+backupUUID(i)+"/world/level.dat", "forged")
		require.Equal(t, 202, w.restore(t, i, true).Status)
		require.JSONEq(t, `{"successful":true}`, w.panel.Await(t, "POST /backups/"+backupUUID(i)+"/restore", 1).Body)
		w.files(t, map[string]string{"world/level.dat": "old"})
		list, err := os.ReadDir(w.folder(t))
		require.NoError(t, err)
		require.Len(t, list, 1, name)
	}
}

// TestRestoreOnAFullDisk: a restore for which the disk has no space fails; it does not fill the disk again and again.
func TestRestoreOnAFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.old(t, alpha+"/"+backupUUID(1)+".tar.gz")
	berth := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.berth.Addr})
	full := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/archive") {
			out.Header().Set("X-Error-Code", string(v1.DiskFull))
			out.WriteHeader(http.StatusInsufficientStorage)
			return
		}
		berth.ServeHTTP(out, r)
	}))
	t.Cleanup(full.Close)
	w.stop()
	var err error
	w.api, err = client.New(client.Options{URL: full.URL, Token: v1.Secret(w.berth.Token)})
	require.NoError(t, err)
	w.run(t)
	for i, truncate := range []bool{false, true} {
		require.Equal(t, 202, w.restore(t, 1, truncate).Status)
		require.JSONEq(t, `{"successful":false}`, w.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", i+1).Body)
	}
	w.files(t, map[string]string{"game.txt": "game of hello\n"})
}
