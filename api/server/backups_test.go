package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/hack/test/pathtest"
	"berth/hack/test/storetest"
	"berth/store"
)

// shelf is Archives in a directory: of the target local a file, of s3 a URL.
type shelf struct {
	noArchives
	dir string
}

func (s shelf) Has(v1.Target) bool { return true }

func (s shelf) Fetch(_ context.Context, target v1.Target, key, name string) (*os.File, string, error) {
	if target == v1.TargetS3 {
		return nil, "https://s3.example/" + key + "?name=" + name, nil
	}
	f, err := os.Open(filepath.Join(s.dir, key))
	return f, "", err
}

func (s shelf) List(_ context.Context, b v1.Backup, folder string) ([]v1.FileEntry, error) {
	if folder == "missing" {
		return nil, v1.Errorf(v1.PathNotFound, "Backup does not have the path: missing")
	}
	return []v1.FileEntry{{Name: folder + " of " + b.Meta.ID, Type: v1.TypeFile, Mode: "0644"}}, nil
}

func newShelved(t *testing.T) (*harness, shelf) {
	t.Helper()
	s := shelf{dir: t.TempDir()}
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
	require.Eventually(t, func() bool { return h.server.sessions.Len() == 1 }, time.Minute, time.Millisecond)
	h.must("POST", "/backups/"+id+"/restore", nil)
	require.Eventually(t, func() bool { return h.server.sessions.Len() == 0 }, time.Minute, time.Millisecond, "the upload goes on")
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

// TestPutBackup: a retry is the same backup, also after it was completed; another request for its id is refused.
func TestPutBackup(t *testing.T) {
	h, _ := newShelved(t)
	volume, other := h.volume(), h.volume()
	path := "/volumes/" + volume + "/backups/" + noID
	body := object{"name": "n", "ignore": []string{"*.log"}}
	made := h.must("PUT", path, body).json
	require.Equal(t, []any{noID, volume, "n", "local", "pending"}, []any{made["backup_id"], made["volume_id"], made["name"], made["target"], made["state"]})
	require.Equal(t, made, h.must("PUT", path, object{"name": "n", "ignore": []string{"*.log"}, "target": "local"}).json)
	complete(h, noID, 1000)
	require.Equal(t, "completed", h.must("PUT", path, body).json["state"])
	require.Len(t, h.must("GET", "/volumes/"+volume+"/backups", nil).json["backups"], 1)

	const exists = "Backup already exists, of another volume or with other parameters"
	h.refuse(409, exists, "PUT", path, nil)
	h.refuse(409, exists, "PUT", path, object{"name": "m", "ignore": []string{"*.log"}})
	h.refuse(409, exists, "PUT", "/volumes/"+other+"/backups/"+noID, body)
	h.refuse(404, "Volume not found", "PUT", "/volumes/"+noID+"/backups/"+noID, body)
	for _, id := range []string{"x", strings.ToUpper(noID), noID + "0"} {
		h.refuse(400, "backup: must be a UUID in lower case", "PUT", "/volumes/"+volume+"/backups/"+id, body)
	}
	h.settings.change(func(c *v1.Config) { c.Backups.MaxPerVolume = 1 })
	require.Equal(t, "completed", h.must("PUT", path, body).json["state"], "it takes no more space")
	h.must("DELETE", "/backups/"+noID, nil)
	h.refuse(409, exists, "PUT", path, body)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error { return store.Backups.Purge(tx, noID) }))
	require.Equal(t, "pending", h.must("PUT", path, body).json["state"])

	own := intent.NewID()
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Backups.Create(tx, own, v1.BackupSpec{VolumeID: volume, Policy: true, BackupRequest: v1.BackupRequest{Target: v1.TargetLocal}})
	}))
	h.refuse(409, exists, "PUT", "/volumes/"+volume+"/backups/"+own, nil)
}

// TestRestorePaths: what a restore of some paths may ask for.
func TestRestorePaths(t *testing.T) {
	h, _ := newShelved(t)
	volume := h.volume()
	path := "/backups/" + backup(h, volume, nil) + "/restore"
	h.refuse(400, "mode: must be merge with paths", "POST", path, object{"mode": "replace", "paths": []string{"a"}})
	for text, paths := range map[string][]string{
		"paths[1]: must be a path inside the volume, without ..":                {"a", "../b"},
		"paths[0]: must be a path inside the volume, without ..":                {"/etc"},
		"paths[0]: must not be the root: leave paths out to restore everything": {"./"},
		"paths: must have at most 256 paths":                                    slices.Repeat([]string{"a"}, 257),
		"paths: must have at most 65536 bytes in all":                           slices.Repeat([]string{strings.Repeat(strings.Repeat("a", 250)+"/", 16)}, 17),
	} {
		h.refuse(400, text, "POST", path, object{"paths": paths})
	}
	id := h.must("POST", path, object{"paths": []string{"world/level.dat", "plugins"}}).json["restore_id"].(string)
	r, err := store.Restores.Get(h.store.Read(), id)
	require.NoError(t, err)
	require.Equal(t, v1.RestoreMerge, r.Spec.Mode)
	require.Equal(t, []string{"world/level.dat", "plugins"}, r.Spec.Paths)
}

func TestBackupFiles(t *testing.T) {
	h, _ := newShelved(t)
	volume := h.volume()
	id := h.must("POST", "/volumes/"+volume+"/backups", nil).json["backup_id"].(string)
	path := "/backups/" + id + "/files"
	h.refuse(409, "Backup is not completed", "GET", path, nil)
	complete(h, id, 1000)
	require.Contains(t, h.must("GET", path, nil).raw, `"name":". of `+id)
	require.Contains(t, h.must("GET", path+"?path=world", nil).raw, `"name":"world of `+id)
	h.refuse(400, "Invalid path: path traversal detected", "GET", path+"?path=a/..", nil)
	h.refuse(404, "Backup does not have the path: missing", "GET", path+"?path=missing", nil)
	h.refuse(404, "Backup not found", "GET", "/backups/"+noID+"/files", nil)
	h.container("mc", volume)
	token := h.mint(object{"scopes": []string{"read"}, "containers": []string{"mc"}})
	ask := func() int { return h.do(request{method: "GET", path: path, token: token}).status }
	require.Equal(t, 200, ask())
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { s.DeniedFiles = []string{"secret"}; return nil })
	}))
	require.Equal(t, 403, ask())
	h.container("other", h.volume())
	require.Equal(t, 404, h.do(request{method: "GET", path: path, token: h.mint(object{"scopes": []string{"read"}, "containers": []string{"other"}})}).status)
}

// TestHostilePathsOfBackups: what breaks the path rules is refused in a list and in a restore, and a name with two dots is
// not.
func TestHostilePathsOfBackups(t *testing.T) {
	h, _ := newShelved(t)
	id := backup(h, h.volume(), nil)
	list := func(p string) answer { return h.call("GET", "/backups/"+id+"/files?path="+url.QueryEscape(p), nil) }
	restore := func(p string) answer {
		return h.call("POST", "/backups/"+id+"/restore", object{"paths": []string{"a", p}})
	}
	for _, p := range pathtest.InvalidUTF8() { // which cannot be in JSON
		require.Equal(t, 400, list(p).status, "%.60q", p)
	}
	for _, p := range pathtest.Texts() {
		if p == "" {
			require.Equal(t, 200, list(p).status)
		} else {
			require.Equal(t, "400 invalid_path", fmt.Sprint(list(p).status, " ", list(p).header.Get("X-Error-Code")), "%.60q", p)
		}
		require.Equal(t, 400, restore(p).status, "%.60q", p)
	}
	require.Empty(t, store.Restores.IDs(h.store.Read()))
	for _, p := range pathtest.Dots() {
		require.Equal(t, 200, list(p).status, p)
	}
	require.Equal(t, 200, restore("..a").status)
}

// statusAndError returns the status and the error of an answer.
func statusAndError(a answer) string { return fmt.Sprint(a.status, " ", a.json["error"]) }

func TestBackupPolicy(t *testing.T) {
	h, _ := newShelved(t)
	volume := h.volume()
	path := "/volumes/" + volume + "/backup-policy"
	h.refuse(404, "Backup policy not found", "GET", path, nil)
	h.refuse(404, "Backup policy not found", "DELETE", path, nil)
	const one = "every: must be set, or cron: exactly one of the two"
	h.refuse(400, "keep: is required; "+one, "PUT", path, object{})
	h.refuse(400, one, "PUT", path, object{"keep": 1})
	h.refuse(400, one, "PUT", path, object{"keep": 1, "every": "1h", "cron": "@daily"})
	h.refuse(400, "timezone: must be beside cron", "PUT", path, object{"keep": 1, "every": "1h", "timezone": "UTC"})
	h.refuse(400, "timezone: must be the name of an IANA time zone such as Europe/Berlin", "PUT", path, object{"keep": 1, "cron": "@daily", "timezone": "Mars"})
	h.refuse(400, `cron: must be five fields such as "0 4 * * *", or a name such as @daily: unrecognized descriptor: @start`, "PUT", path, object{"keep": 1, "cron": "@start"})
	h.refuse(400, "every: must be between 10s and 365d; keep: must be between 1 and 1000", "PUT", path, object{"every": "9s", "keep": 0})
	p := h.must("PUT", path, object{"every": "6h", "keep": 8, "ignore": []string{"cache/"}}).json
	require.Equal(t, "6h0m0s", p["every"])
	require.Equal(t, p, h.must("GET", path, nil).json)
	daily := h.must("PUT", path, object{"cron": "@daily", "keep": 8}).json
	require.Equal(t, []any{"0s", "@daily", "UTC"}, []any{daily["every"], daily["cron"], daily["timezone"]})
	require.Equal(t, daily, h.must("PUT", path, daily).json)
	require.Equal(t, []any{}, h.must("PUT", path, object{"every": "10s", "keep": 1}).json["ignore"], "it is replaced as a whole")
	h.must("PUT", path, p)
	h.must("DELETE", path, nil)
	h.refuse(404, "Backup policy not found", "GET", path, nil)
	h.must("PUT", path, p)
	h.must("DELETE", "/volumes/"+volume, nil)
	_, err := intent.FindPolicy(h.store.Read(), volume)
	require.ErrorIs(t, err, v1.ErrPolicyNotFound, "it goes with its volume")
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
	require.Equal(t, []string{volume}, store.Volumes.IDs(restored.Read()))
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

// TestQuiesceTypesAsCommandDoes: the commands of a backup and of a policy need what the same commands
// of a console need.
func TestQuiesceTypesAsCommandDoes(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	body := `{"every":"1h","keep":1,"quiesce":{"container":"mc","before":"save","after":"\u0003"}}`
	for scopes, want := range map[string]int{"files console": 403, "files console power": 200} {
		token := h.mint(object{"scopes": strings.Fields(scopes), "containers": []string{"mc"}})
		put := h.do(request{method: "PUT", path: "/volumes/" + volume + "/backup-policy", body: body, token: token})
		require.Equal(t, want, put.status, "%s: %s", scopes, put.raw)
		post := h.do(request{method: "POST", path: "/volumes/" + volume + "/backups", token: token,
			body: strings.Replace(body, `"every":"1h","keep":1,`, "", 1)})
		require.Equal(t, want, post.status, "%s: %s", scopes, post.raw)
	}
}

// fetching is Archives whose archives are opened until the context ends.
type fetching struct {
	Archives
	begun chan struct{}
	ended chan error
}

func (f fetching) Fetch(ctx context.Context, _ v1.Target, _, _ string) (*os.File, string, error) {
	close(f.begun)
	<-ctx.Done()
	f.ended <- ctx.Err()
	return nil, "", ctx.Err()
}

// TestFetchEndsWithClient: nobody waits for the target of an archive whose client has left.
func TestFetchEndsWithClient(t *testing.T) {
	f := fetching{noArchives{}, make(chan struct{}), make(chan error, 1)}
	h := newHarnessWith(t, func(d *Deps) { d.Archives = f })
	id, volume := intent.NewID(), h.volume()
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return errors.Join(store.Backups.Create(tx, id, v1.BackupSpec{VolumeID: volume, BackupRequest: v1.BackupRequest{Target: v1.TargetLocal}}),
			store.Backups.SetStatus(tx, id, func(s *v1.BackupStatus) { s.State = v1.JobCompleted }))
	}))
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", h.base+"/backups/"+id+"/content?token="+adminToken, nil)
	require.NoError(t, err)
	go func() { _, _ = h.client.Do(req) }()
	waitFor(t, "it did not begin", f.begun)
	leave()
	require.ErrorIs(t, <-f.ended, context.Canceled)
}
