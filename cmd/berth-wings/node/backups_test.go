package node_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// backupUUID returns the UUID of a backup of a test.
func backupUUID(n int) string { return fmt.Sprintf("bbbbbbbb-%04d-4001-8001-bbbbbbbbbbbb", n) }

const atAlpha = "/api/servers/" + alpha

// request requests a backup and returns the report to the panel.
func (w *world) backup(t *testing.T, adapter string, n int) string {
	t.Helper()
	w.Want(t, 202, "POST", atAlpha+"/backup", map[string]string{"adapter": adapter, "uuid": backupUUID(n), "ignore": "cache/\n*.log"})
	return w.panel.Await(t, "POST /backups/"+backupUUID(n), 1).Body
}

// write writes a file of alpha.
func (w *world) write(t *testing.T, name, content string) {
	t.Helper()
	w.Want(t, 204, "POST", atAlpha+"/files/write?file="+name, content)
}

// files requires the content of files of alpha; an empty one is not there.
func (w *world) files(t *testing.T, want map[string]string) {
	t.Helper()
	for name, content := range want {
		a := w.Do(t, "GET", atAlpha+"/files/contents?file="+name, nil)
		require.Equal(t, content == "", a.Status == 404, name)
		if content != "" {
			require.Equal(t, content, a.Body, name)
		}
	}
}

// restore requests the restore of a backup that the node has. The bridge ends an earlier one a moment after its report.
func (w *world) restore(t *testing.T, n int, truncate bool) (a paneltest.Answer) {
	t.Helper()
	body := map[string]any{"adapter": "wings", "truncate_directory": truncate, "download_url": w.URL}
	berthtest.Until(t, 3*time.Minute, "an earlier action is over", func() bool {
		a = w.Do(t, "POST", atAlpha+"/backup/"+backupUUID(n)+"/restore", body)
		return !strings.Contains(a.Error(), "another power action")
	})
	return a
}

// unmarked waits until no job of alpha is recorded.
func (w *world) unmarked(t *testing.T) {
	t.Helper()
	berthtest.Until(t, 3*time.Minute, "no job is recorded", func() bool {
		v, err := w.berth.API.Volumes().Get(t.Context(), w.berth.Container(t, alpha).VolumeID)
		return err == nil && len(v.Labels) == 1
	})
}

// beta creates another server.
func (w *world) beta(t *testing.T) {
	t.Helper()
	w.panel.SetServer(t, strings.NewReplacer(alpha, beta, fmt.Sprint(w.port), fmt.Sprint(berthtest.FreePort(t))).Replace(w.server("")))
	w.panel.SetScript(beta, "berth-test/busybox:1", "sh", "true")
	w.Want(t, 202, "POST", "/api/servers", map[string]any{"uuid": beta})
	w.panel.Await(t, "POST /servers/"+beta+"/install", 1)
}

// TestBackups makes, downloads, restores and deletes backups as a customer of the panel does.
func TestBackups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.write(t, "world/level.dat", "level one")
	w.write(t, "cache/skip.me", "not wanted")
	page := w.open(t, "websocket.connect", "backup.read")
	page.Want("status", "offline")
	require.Regexp(t, `^{"checksum":"[0-9a-f]{64}","checksum_type":"sha256","size":[1-9]\d*,"successful":true,"parts":null}$`, w.backup(t, "wings", 1))
	page.Want("backup completed", `"is_successful":true`)
	page.Want("backup completed:"+backupUUID(1), `"uuid":"`+backupUUID(1)+`"`)
	w.unmarked(t)

	require.Equal(t, "The backup identifier must be a valid UUID.",
		w.Want(t, 400, "POST", atAlpha+"/backup", map[string]string{"adapter": "wings", "uuid": "../../x"}).Error())
	w.Want(t, 500, "POST", atAlpha+"/backup", map[string]string{"adapter": "tape", "uuid": backupUUID(1)})
	w.Want(t, 202, "POST", atAlpha+"/backup", map[string]string{"adapter": "wings", "uuid": backupUUID(1), "ignore": "cache/\n*.log"})
	w.panel.Await(t, "POST /backups/"+backupUUID(1), 2)
	w.unmarked(t)

	download := func(more map[string]any) paneltest.Answer {
		t.Helper()
		return w.Do(t, "GET", "/download/backup?token="+link(t, "backup-download", more), nil, "Authorization", "")
	}
	a := download(map[string]any{"backup_uuid": backupUUID(1)})
	require.Equal(t, 200, a.Status, "the panel has refused the second report, and the backup is kept: %s", a.Body)
	require.Equal(t, `attachment; filename="`+backupUUID(1)+`.tar.zst"`, a.Header.Get("Content-Disposition"))
	require.Equal(t, fmt.Sprint(len(a.Body)), a.Header.Get("Content-Length"))
	require.Equal(t, 404, download(map[string]any{"backup_uuid": backupUUID(2)}).Status)
	require.Equal(t, 404, download(map[string]any{"backup_uuid": backupUUID(1), "scope": "file-download"}).Status)

	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start"})
	w.state(t, "running")
	for i, truncate := range []bool{false, true} {
		w.write(t, "world/level.dat", "level two")
		w.write(t, "world/new.dat", "made later")
		require.Equal(t, 202, w.restore(t, 1, truncate).Status)
		require.JSONEq(t, `{"successful":true}`, w.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", i+1).Body)
		w.unmarked(t)
		later := "made later"
		if truncate {
			later = ""
		}
		w.files(t, map[string]string{"world/level.dat": "level one", "world/new.dat": later})
		w.state(t, "offline")
	}
	require.Equal(t, 404, w.restore(t, 9, false).Status)
	w.Want(t, 400, "POST", atAlpha+"/backup/"+backupUUID(1)+"/restore", map[string]string{"adapter": "tape"})

	w.beta(t)
	atBeta := "/api/servers/" + beta + "/backup/" + backupUUID(1)
	w.Want(t, 404, "DELETE", atBeta, nil)
	w.Want(t, 404, "POST", atBeta+"/restore", map[string]any{"adapter": "wings"})
	require.Equal(t, 404, download(map[string]any{"backup_uuid": backupUUID(1), "server_uuid": beta}).Status, "of another server")
	w.Want(t, 204, "DELETE", atAlpha+"/backup/"+backupUUID(1), nil)
	require.Equal(t, "The requested backup was not found on this server.", w.Want(t, 404, "DELETE", atAlpha+"/backup/"+backupUUID(1), nil).Error())
	w.backup(t, "wings", 2)
	w.unmarked(t)
	w.Want(t, 204, "DELETE", atAlpha+"/deleteAllBackups", nil)
	require.Equal(t, 404, w.restore(t, 2, false).Status)

	w.panel.Fail(func(c paneltest.Call) int { return map[bool]int{true: 404}[c.Path == "/backups/"+backupUUID(3)] })
	w.backup(t, "wings", 3)
	w.unmarked(t)
	require.Equal(t, 404, w.restore(t, 3, false).Status, "the panel does not have it")
}

// TestBackupsInS3: the archive is a tar.gz in the panel's parts, though the store fails now and then, and is restored from there.
func TestBackupsInS3(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.write(t, "world/level.dat", "level one")
	w.write(t, "world/noise.dat", rand.Text()+rand.Text()+rand.Text()+rand.Text()+rand.Text()+rand.Text()+rand.Text()+rand.Text()+rand.Text()+rand.Text())
	failed := map[string]bool{}
	w.panel.Fail(func(c paneltest.Call) int {
		if c.Method != http.MethodPut || failed[c.Path] || !strings.HasSuffix(c.Path, "2") {
			return 0
		}
		failed[c.Path] = true
		return 503
	})
	require.Regexp(t, `"checksum_type":"sha256","size":[1-9]\d*,"successful":true,"parts":\[{"etag":"\\"1\\"","part_number":1},{"etag":"\\"2\\"","part_number":2}`, w.backup(t, "s3", 1))
	w.unmarked(t)
	require.NotEmpty(t, failed)
	require.Greater(t, len(w.panel.Object(backupUUID(1))), 2*paneltest.PartSize)
	for _, c := range w.panel.Calls("PUT /objects/") {
		require.Equal(t, "application/x-gzip", c.Header.Get("Content-Type"))
	}
	names := map[string]string{}
	packed, err := gzip.NewReader(strings.NewReader(w.panel.Object(backupUUID(1))))
	require.NoError(t, err)
	for content := tar.NewReader(packed); ; {
		h, err := content.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(content)
		require.NoError(t, err)
		names[h.Name] = string(text)
	}
	require.Equal(t, "level one", names["world/level.dat"])
	w.Want(t, 404, "DELETE", atAlpha+"/backup/"+backupUUID(1), nil) // it is in S3 alone

	at := atAlpha + "/backup/" + backupUUID(1) + "/restore"
	body := map[string]any{"adapter": "s3", "truncate_directory": true, "download_url": w.panel.URL + "/objects/" + backupUUID(1) + "/all"}
	require.Contains(t, w.Want(t, 400, "POST", at, body).Error(), "127.0.0.1 is not a public address")
	w.stop()
	text, err := os.ReadFile(w.file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.file, []byte(strings.Replace(string(text), "system: {", "system: {backups: {restore_host_allowlist: [127.0.0.0/8]}, ", 1)), 0o600))
	w.run(t)
	w.write(t, "world/level.dat", "level two")
	w.write(t, "world/new.dat", "made later")
	w.Want(t, 202, "POST", at, body)
	require.JSONEq(t, `{"successful":true}`, w.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", 1).Body)
	w.unmarked(t)
	w.files(t, map[string]string{"world/level.dat": "level one", "world/new.dat": ""})
	body["download_url"] = ""
	require.Equal(t, "The download_url field is required when the backup adapter is set to S3.", w.Want(t, 400, "POST", at, body).Error())
	body["download_url"] = w.panel.URL + "/objects/none/all"
	require.Equal(t, "The provided backup link returned an invalid response status: 404 Not Found", w.Want(t, 400, "POST", at, body).Error())
	body["download_url"] = w.panel.URL + "/elsewhere"
	require.Contains(t, w.Want(t, 400, "POST", at, body).Error(), "invalid response status")
	w.files(t, map[string]string{"world/level.dat": "level one"})
}

// TestBackupsOutliveTheBridge: what a bridge has not reported is reported by the next one, once, and what it
// has reported is kept.
func TestBackupsOutliveTheBridge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.write(t, "world/level.dat", "level one")
	w.panel.Fail(func(c paneltest.Call) int { return map[bool]int{true: 500}[strings.HasPrefix(c.Path, "/backups/")] })
	w.backup(t, "wings", 1)
	w.stop()
	w.panel.Fail(nil)
	w.run(t)
	w.unmarked(t)
	reports := func(status int, path string) (n int) {
		for _, c := range w.panel.Calls("POST /backups/" + path) {
			if c.Status == status {
				n++
			}
		}
		return n
	}
	require.Equal(t, 1, reports(204, backupUUID(1)))

	// The end between a report and its record: the panel has it already.
	mark := func(label, value string) {
		volume := w.berth.Container(t, alpha).VolumeID
		labels := map[string]string{"wings.uuid": alpha, label: value}
		_, err := w.berth.API.Volumes().Change(t.Context(), volume, v1.VolumeChange{Labels: &labels})
		require.NoError(t, err)
	}
	w.stop()
	mark("wings.backup."+backupUUID(1), "wings")
	w.run(t)
	w.unmarked(t)
	require.Equal(t, 1, reports(400, backupUUID(1)))

	// The end before berth had the restore, and before it had the backup.
	w.write(t, "world/level.dat", "level two")
	w.stop()
	mark("wings.restore."+backupUUID(1), "replace:before")
	w.run(t)
	require.JSONEq(t, `{"successful":true}`, w.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", 1).Body)
	w.unmarked(t)
	w.files(t, map[string]string{"world/level.dat": "level one"})

	// The end between berth's answer to a restore and the record of it: it is not carried out again.
	w.stop()
	_, err := w.berth.API.WithKey("after").Backups().Restore(t.Context(), backupUUID(1), v1.RestoreRequest{Mode: v1.RestoreReplace, Stop: true})
	require.NoError(t, err)
	berthtest.Until(t, 3*time.Minute, "it is restored", func() bool {
		b, err := w.berth.API.Backups().Get(t.Context(), backupUUID(1))
		return err == nil && len(b.Restores) == 2 && b.Restores[0].State.Finished()
	})
	mark("wings.restore."+backupUUID(1), "replace:after")
	_, err = w.berth.API.Files().Upload(t.Context(), w.berth.Container(t, alpha).VolumeID, "later.dat", strings.NewReader("later"), client.UploadOptions{})
	require.NoError(t, err)
	w.run(t)
	require.JSONEq(t, `{"successful":true}`, w.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", 2).Body)
	w.unmarked(t)
	w.files(t, map[string]string{"world/level.dat": "level one", "later.dat": "later"})
	w.stop()
	mark("wings.backup."+backupUUID(2), "wings")
	w.run(t)
	require.JSONEq(t, `{"checksum":"","checksum_type":"","size":0,"successful":false,"parts":null}`, w.panel.Await(t, "POST /backups/"+backupUUID(2), 1).Body)
	w.unmarked(t)
	w.stop()
	mark("wings.restore."+backupUUID(1), "s3")
	w.run(t)
	require.JSONEq(t, `{"successful":false}`, w.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", 3).Body)
	w.unmarked(t)
	w.files(t, map[string]string{"world/level.dat": "level one"})

	// The end when an archive was extracted, and when some of it is in its place.
	for i, folder := range []string{".restore-all-", ".restore-only-"} {
		w.write(t, folder+backupUUID(1)+"/world/level.dat", "level three")
		w.write(t, "placed.dat", "placed")
		w.stop()
		mark("wings.restore."+backupUUID(1), "s3")
		if i == 1 {
			require.NoError(t, w.berth.API.Files().Delete(t.Context(), w.berth.Container(t, alpha).VolumeID, "world"))
		}
		w.run(t)
		require.JSONEq(t, `{"successful":true}`, w.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", 4+i).Body)
		w.unmarked(t)
		w.files(t, map[string]string{"world/level.dat": "level three", "placed.dat": []string{"", "placed"}[i], folder + backupUUID(1) + "/world": ""})
	}
}
