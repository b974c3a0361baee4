package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/hack/test/storetest"
	"berth/store"
)

// shelf is Archives in a directory: of the target local a file, of s3 a URL.
type shelf struct{ dir string }

func (s shelf) Has(v1.Target) bool { return true }

func (s shelf) Fetch(_ context.Context, target v1.Target, key, name string) (*os.File, string, error) {
	if target == v1.TargetS3 {
		return nil, "https://s3.example/" + key + "?name=" + name, nil
	}
	f, err := os.Open(filepath.Join(s.dir, key))
	return f, "", err
}

func newShelved(t *testing.T) (*harness, shelf) {
	t.Helper()
	s := shelf{t.TempDir()}
	return newHarnessWith(t, func(d *Deps) { d.Archives = s }), s
}

const noID = "01234567-89ab-4cde-8f01-23456789abcd"

// backup requests a backup and completes it as the controller does.
func backup(h *harness, volume string, body any) string {
	h.t.Helper()
	id := h.must("POST", "/volumes/"+volume+"/backups", body).json["backup_id"].(string)
	complete(h, id, 1000)
	return id
}

func complete(h *harness, id string, bytes int64) {
	h.t.Helper()
	require.NoError(h.t, h.store.Update(func(tx *store.Tx) error {
		now := tx.Now()
		return store.Backups.SetStatus(tx, id, func(s *v1.BackupStatus) {
			*s = v1.BackupStatus{State: v1.JobCompleted, FinishedAt: &now, Size: 7, Files: 2, Unpacked: bytes, Checksum: "sha256:abc",
				Skipped: []v1.Skipped{{Path: "x", Reason: v1.SkippedSpecial}}, SkippedTotal: 1}
		})
	}))
}

func TestBackupLife(t *testing.T) {
	h, shelf := newShelved(t)
	volume := h.volume()
	h.container("mc", volume)
	made := h.must("POST", "/volumes/"+volume[:8]+"/backups", object{"name": "n", "ignore": []string{"*.log"},
		"quiesce": object{"container": "mc", "before": "save-off", "wait_for": "Saved", "after": "save-on"}}).json
	id := made["backup_id"].(string)
	require.Equal(t, object{"message": "Backup started", "backup_id": id, "state": "pending"}, made)
	b := h.must("GET", "/backups/"+id, nil).json
	require.Equal(t, "pending", b["state"])
	require.Nil(t, b["checksum"])
	require.Empty(t, b["skipped"])
	h.refuse(409, "Backup is not completed", "GET", "/backups/"+id+"/content", nil)
	h.refuse(409, "Backup is not completed", "POST", "/backups/"+id+"/restore", nil)
	complete(h, id, 1000)
	require.Equal(t, "sha256:abc", h.must("GET", "/backups/"+id, nil).json["checksum"])

	require.NoError(t, os.WriteFile(filepath.Join(shelf.dir, v1.ArchiveKey(id)), []byte("archive"), 0o600))
	a := h.do(request{method: "GET", path: "/backups/" + id + "/content", accept: "-", header: map[string][]string{"Range": {"bytes=2-3"}}})
	require.Equal(t, "206 ch", fmt.Sprint(a.status, " ", a.raw))
	require.Equal(t, `"abc"`, a.header.Get("ETag"))
	require.Equal(t, "application/zstd", a.header.Get("Content-Type"))
	require.Equal(t, "attachment; filename="+id+".tar.zst", a.header.Get("Content-Disposition"))

	h.must("DELETE", "/containers/mc", nil)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, "mc") }))
	restore := h.must("POST", "/backups/"+id+"/restore", nil).json["restore_id"].(string)
	b = h.must("GET", "/backups/"+id, nil).json
	require.Equal(t, restore, b["restores"].([]any)[0].(object)["restore_id"])
	require.Equal(t, "replace", b["restores"].([]any)[0].(object)["mode"])
	h.refuse(409, "Backup is in use by restore "+restore, "DELETE", "/backups/"+id, nil)
	h.refuse(409, "Volume is being restored", "POST", "/backups/"+id+"/restore", nil)
	h.refuse(409, "Volume is being restored", "DELETE", "/volumes/"+volume, nil)
	end(h, restore, volume)
	h.must("DELETE", "/backups/"+id, nil)
	require.Equal(t, "deleting", h.must("GET", "/backups/"+id, nil).json["state"])
	h.refuse(409, "Backup is not completed", "POST", "/backups/"+id+"/restore", nil)
}

// end completes a restore as the controller does.
func end(h *harness, id, volume string) {
	h.t.Helper()
	require.NoError(h.t, h.store.Update(func(tx *store.Tx) error {
		if err := store.Restores.SetStatus(tx, id, func(s *v1.RestoreStatus) { s.State = v1.JobCompleted }); err != nil {
			return err
		}
		return store.EndRestore(tx, id, volume)
	}))
}

func TestBackupOfS3IsRedirected(t *testing.T) {
	h, _ := newShelved(t)
	id := backup(h, h.volume(), object{"target": "s3"})
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a := h.call("GET", "/backups/"+id+"/content", nil)
	require.Equal(t, 302, a.status)
	require.Equal(t, "https://s3.example/"+v1.ArchiveKey(id)+"?name="+v1.ArchiveKey(id), a.header.Get("Location"))
}

func TestBackupRefusals(t *testing.T) {
	h, _ := newShelved(t)
	volume, other := h.volume(), h.volume()
	h.container("mc", other)
	path := "/volumes/" + volume + "/backups"
	for text, body := range map[string]object{
		"name: must be at most 128 printable characters":                      {"name": "a\nb"},
		"target: must be local or s3":                                         {"target": "tape"},
		"ignore: must have at most 16384 bytes in all":                        {"ignore": slices.Repeat([]string{strings.Repeat("a", 1024)}, 17)},
		"ignore[0]: must be one line of at most 1024 bytes of UTF-8":          {"ignore": []string{"a\nb"}},
		"quiesce.container: is required":                                      {"quiesce": object{}},
		"quiesce.timeout: must be between 1s and 2m":                          {"quiesce": object{"container": "mc", "timeout": "1h"}},
		"quiesce.container: must be a container that uses the volume":         {"quiesce": object{"container": "mc"}},
		"quiesce.wait_for: must be an RE2 expression: missing closing ): `(`": {"quiesce": object{"container": "mc", "wait_for": "("}},
	} {
		h.refuse(400, text, "POST", path, body)
	}
	h.refuse(404, "Container not found", "POST", path, object{"quiesce": object{"container": "none"}})
	h.refuse(404, "Volume not found", "POST", "/volumes/"+noID+"/backups", nil)
	for _, method := range []string{"GET", "DELETE"} {
		h.refuse(404, "Backup not found", method, "/backups/"+noID, nil)
		h.refuse(404, "Backup not found", method, "/backups/x", nil)
	}
	h.refuse(404, "Backup not found", "GET", "/backups/"+noID+"/content", nil)
	h.refuse(404, "Backup not found", "POST", "/backups/"+noID+"/restore", nil)
	id := backup(h, volume, nil)
	h.refuse(400, "mode: must be replace or merge", "POST", "/backups/"+id+"/restore", object{"mode": "x"})
	h.refuse(404, "Volume not found", "POST", "/backups/"+id+"/restore", object{"volume_id": noID})
	without := newHarness(t)
	without.refuse(400, "target: must be local: backups.s3.endpoint is not configured", "POST", "/volumes/"+without.volume()+"/backups", object{"target": "s3"})
}

// TestBackupLimits: the settings bound the backups of a volume, and the archives of a target.
func TestBackupLimits(t *testing.T) {
	h, _ := newShelved(t)
	limit := func(change func(*v1.BackupsConfig)) {
		h.settings.mu.Lock()
		defer h.settings.mu.Unlock()
		change(&h.settings.config.Backups)
	}
	volume, other := h.volume(), h.volume()
	limit(func(c *v1.BackupsConfig) { c.MaxPerVolume = 2 })
	first := backup(h, volume, nil)
	backup(h, volume, object{"target": "s3"})
	path := "/volumes/" + volume + "/backups"
	h.refuse(429, "The volume has 2 backups (backups.max_per_volume): delete some of them", "POST", path, nil)
	h.refuse(400, "keep: must be between 1 and 1", "PUT", "/volumes/"+volume+"/backup-policy", object{"every": "6h", "keep": 2})
	backup(h, other, nil)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error { return store.Backups.Purge(tx, first) }))
	limit(func(c *v1.BackupsConfig) { c.MaxSize = 7 })
	h.refuse(507, "The backups of the target local have reached backups.max_size: delete some of them", "POST", path, nil)
	limit(func(c *v1.BackupsConfig) { c.MaxSize, c.S3.MaxSize = 8, 7 })
	h.refuse(507, "The backups of the target s3 have reached backups.s3.max_size: delete some of them", "POST", path, object{"target": "s3"})
	a := h.call("POST", path, object{"target": "s3"})
	require.Equal(t, "backups_full", a.header.Get("X-Error-Code"))
	h.must("POST", path, nil)

	bounded := h.must("POST", "/volumes", object{"size_limit": 2 << 30}).json["volume_id"].(string)
	path = "/volumes/" + bounded + "/backups"
	limit(func(c *v1.BackupsConfig) { c.MaxPerVolume, c.MaxSize = 9, 0 })
	stored := func(id string, size int64) {
		require.NoError(t, h.store.Update(func(tx *store.Tx) error {
			return store.Backups.SetStatus(tx, id, func(s *v1.BackupStatus) { s.Size = size })
		}))
	}
	stored(backup(h, bounded, nil), 19<<30)
	stored(backup(h, bounded, nil), 1<<30)
	h.refuse(507, "The backups of the volume have 20480 MiB, which is the limit (backups.max_volume_size): delete some of them", "POST", path, nil)
	limit(func(c *v1.BackupsConfig) { c.MaxVolumeSize = 21 << 30 })
	h.must("POST", path, nil)
}

func TestRestoreRefusals(t *testing.T) {
	h, _ := newShelved(t)
	small := h.must("POST", "/volumes", object{"size_limit": 999}).json["volume_id"].(string)
	id := backup(h, small, nil)
	path := "/backups/" + id + "/restore"
	h.refuse(413, "Volume size limit exceeded", "POST", path, nil)

	volume := h.volume()
	h.container("b", volume)
	h.container("a", volume)
	into := object{"volume_id": volume[:8]}
	h.refuse(409, "Volume is in use by container a", "POST", path, into) // it installs
	installed := func(id string, change func(*v1.ContainerStatus)) {
		require.NoError(t, h.store.Update(func(tx *store.Tx) error {
			return store.Containers.SetStatus(tx, id, func(s *v1.ContainerStatus) {
				*s = v1.ContainerStatus{Phase: v1.Ready, ObservedInstall: 1, StartedInstall: 1}
				change(s)
			})
		}))
	}
	installed("a", func(*v1.ContainerStatus) {})
	for _, phase := range []v1.Phase{v1.Starting, v1.Running, v1.Stopping} {
		installed("b", func(s *v1.ContainerStatus) { s.Phase = phase })
		h.refuse(409, "Volume is in use by container b", "POST", path, into)
	}
	installed("b", func(*v1.ContainerStatus) {})
	h.must("POST", "/containers/a/start", nil) // not begun yet
	h.refuse(409, "Volume is in use by container a", "POST", path, into)
	installed("a", func(s *v1.ContainerStatus) {
		now := time.Now()
		s.Phase, s.ObservedRun, s.NextRetryAt = v1.Exit, 1, &now
	})
	h.refuse(409, "Volume is in use by container a", "POST", path, into) // due for a restart
	h.must("POST", "/containers/a/kill", nil)
	h.must("POST", path, into)
	h.refuse(409, "Volume is being restored", "POST", path, object{"volume_id": volume, "stop": true})
	h.must("POST", "/containers/a/start", nil) // kept for later

	running := h.volume()
	h.container("c", running)
	h.must("POST", path, object{"volume_id": running, "stop": true})
}

// TestFilesDuringRestore: changes are refused, reads are not, and a change in flight
// ends.
func TestFilesDuringRestore(t *testing.T) {
	h := newFileHarness(t)
	volume := h.id
	id := backup(h.harness, volume, nil)
	body, write := io.Pipe()
	slow := make(chan string, 1)
	go func() {
		req, _ := http.NewRequest("PUT", h.base+h.at("files/content", "path", "slow"), body)
		req.Header.Set("Authorization", "Bearer "+adminToken)
		resp, err := h.client.Do(req)
		if err != nil {
			slow <- "cut off"
			return
		}
		resp.Body.Close()
		slow <- resp.Status
	}()
	_, err := write.Write([]byte("the begin of an upload"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return h.server.sessions.Len() == 1 }, 10*time.Second, time.Millisecond)
	h.must("POST", "/backups/"+id+"/restore", nil)
	require.Eventually(t, func() bool { return h.server.sessions.Len() == 0 }, 10*time.Second, time.Millisecond, "the upload goes on")
	write.Close()
	require.NotContains(t, <-slow, "200")
	_, err = os.Stat(filepath.Join(h.dir, "slow"))
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, r := range []struct {
		method, path string
		body         object
	}{
		{"POST", "/files", object{"path": "a", "content": "x"}}, {"DELETE", "/files?path=a", nil}, {"PUT", "/files/content?path=a", nil},
		{"POST", "/folders", object{"path": "a"}}, {"POST", "/copy", object{"source": "a", "destination": "b"}},
		{"POST", "/rename", object{"source": "a", "destination": "b"}}, {"POST", "/chmod", object{"path": "a", "mode": "644"}},
		{"POST", "/compress", object{"output_name": "a"}}, {"POST", "/decompress", object{"archive_path": "a", "destination": "b"}},
	} {
		h.refuse(409, "Volume is being restored", r.method, "/volumes/"+volume+r.path, r.body)
	}
	h.must("GET", "/volumes/"+volume+"/files", nil)
}

func TestBackupsOfRestrictedTokens(t *testing.T) {
	h, _ := newShelved(t)
	mine, other := h.volume(), h.volume()
	h.container("mine", mine)
	h.container("other", other)
	own, foreign := backup(h, mine, nil), backup(h, other, nil)
	token := h.mint(object{"containers": []string{"mine"}, "scopes": []string{"files", "read"}})
	do := func(method, path, body string) answer {
		return h.do(request{method: method, path: path, token: token, body: body})
	}
	require.Len(t, do("GET", "/backups", "").json["backups"], 1)
	require.Equal(t, 200, do("GET", "/backups/"+own, "").status)
	require.Equal(t, 200, do("GET", "/backups?volume="+mine, "").status)
	for _, volume := range []string{other, other[:8], "00000000"} {
		require.Equal(t, "404 Volume not found", statusAndError(do("GET", "/backups?volume="+volume, "")))
	}
	for _, r := range [][2]string{{"GET", ""}, {"GET", "/content"}, {"DELETE", ""}} {
		require.Equal(t, "404 Backup not found", statusAndError(do(r[0], "/backups/"+foreign+r[1], "")))
	}
	require.Equal(t, 403, do("POST", "/backups/"+own+"/restore", "").status)
	create := func(body string) string { return statusAndError(do("POST", "/volumes/"+mine+"/backups", body)) }
	require.Equal(t, "403 Token scope does not allow this operation", create(`{"quiesce":{"container":"mine"}}`))
	require.Equal(t, 404, do("POST", "/volumes/"+other+"/backups", "").status)
	token = h.mint(object{"containers": []string{"mine"}})
	require.Equal(t, "404 Container not found", create(`{"quiesce":{"container":"other"}}`))
	require.Equal(t, 200, do("POST", "/volumes/"+mine+"/backups", `{"quiesce":{"container":"mine"}}`).status)
	events := do("GET", "/events?type=backup", "").json["events"].([]any)
	require.Len(t, events, 1, "not that of the other one")
	require.Equal(t, own, events[0].(object)["backup"])
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		for _, b := range [][2]string{{own, mine}, {foreign, other}} {
			tx.Emit(v1.Event{Event: v1.EventBackup, Data: "running", Backup: b[0], Volume: b[1]})
		}
		return nil
	}))
	require.Len(t, do("GET", "/events?type=backup", "").json["events"], 2)
	require.Len(t, h.must("GET", "/events?type=backup&volume="+other, nil).json["events"], 2)
}

// statusAndError returns the status and the error of an answer.
func statusAndError(a answer) string { return fmt.Sprint(a.status, " ", a.json["error"]) }

func TestBackupPolicy(t *testing.T) {
	h, _ := newShelved(t)
	volume := h.volume()
	path := "/volumes/" + volume + "/backup-policy"
	h.refuse(404, "Backup policy not found", "GET", path, nil)
	h.refuse(404, "Backup policy not found", "DELETE", path, nil)
	h.refuse(400, "every: is required; keep: is required", "PUT", path, object{})
	h.refuse(400, "every: must be between 10s and 365d; keep: must be between 1 and 1000", "PUT", path, object{"every": "9s", "keep": 0})
	p := h.must("PUT", path, object{"every": "6h", "keep": 8, "ignore": []string{"cache/"}}).json
	require.Equal(t, "6h0m0s", p["every"])
	require.Equal(t, p, h.must("GET", path, nil).json)
	require.Equal(t, []any{}, h.must("PUT", path, object{"every": "10s", "keep": 1}).json["ignore"], "it is replaced as a whole")
	h.must("PUT", path, p)
	h.must("DELETE", path, nil)
	h.refuse(404, "Backup policy not found", "GET", path, nil)
	h.must("PUT", path, p)
	h.must("DELETE", "/volumes/"+volume, nil)
	require.NoError(t, h.store.View(func(tx *store.Tx) error {
		_, err := intent.FindPolicy(tx, volume)
		require.ErrorIs(t, err, v1.ErrPolicyNotFound, "it goes with its volume")
		return nil
	}))
}

func TestStoreContent(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	a := h.must("GET", "/store/content", nil)
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString(a.raw)
	require.NoError(t, err)
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "store")
	_, err = store.Restore(dir, f)
	require.NoError(t, err)
	restored, err := store.Open(dir, store.Options{})
	require.NoError(t, err)
	defer restored.Close()
	require.NoError(t, restored.View(func(tx *store.Tx) error {
		require.Equal(t, []string{volume}, store.Volumes.IDs(tx))
		return nil
	}))
	token := h.mint(object{"scopes": []string{"read"}})
	require.Equal(t, 403, h.do(request{method: "GET", path: "/store/content", token: token}).status)
}

// TestDamagedRestoreKeepsNoBackup: a backup with a restore whose record cannot be read is
// shown and deleted.
func TestDamagedRestoreKeepsNoBackup(t *testing.T) {
	h, _ := newShelved(t)
	volume := h.volume()
	id := backup(h, volume, nil)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return errors.Join(store.Restores.Create(tx, "damaged", v1.RestoreSpec{BackupID: id, RestoreRequest: v1.RestoreRequest{VolumeID: volume}}), storetest.Damage(tx, "restore", "damaged"))
	}))
	require.Empty(t, h.must("GET", "/backups/"+id, nil).json["restores"])
	h.must("DELETE", "/backups/"+id, nil)
}
