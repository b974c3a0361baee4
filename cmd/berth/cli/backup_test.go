package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

const (
	backupID  = "b1e9c2d4-5f6a-4b7c-8d9e-0a1b2c3d4e5f"
	restoreID = "c2f0d3e5-6a7b-4c8d-9e0f-1b2c3d4e5f60"
)

// backupJSON returns a backup in a state, with the checksum of "archive".
func backupJSON(state, message string) string {
	return fmt.Sprintf(`{"backup_id":%q,"volume_id":"3f2a91c0-1111","name":"n","target":"local","state":%q,"size":7,"files":3,"skipped_total":1,
		"checksum":"sha256:%x","progress":{"bytes":5,"total":10},"message":%q,"restores":[{"restore_id":%q,"state":%q,"message":%q}]}`,
		backupID, state, sha256.Sum256([]byte("archive")), message, restoreID, state, message)
}

// bodyOf returns the body of the first request of a method and path.
func bodyOf(f *fakeAPI, request string) string {
	for _, r := range f.seen() {
		if body, is := strings.CutPrefix(r, request+" "); is {
			return body
		}
	}
	return ""
}

func TestBackupCreate(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"POST /volumes/3f2a91c0/backups": `200 {"message":"Backup started","backup_id":"` + backupID + `","state":"pending"}`,
		"GET /backups/" + backupID:       "200 " + backupJSON("completed", ""),
	})
	out, _, err := command(t, f.env(), "backup", "create", "3f2a91c0", "--name", "n", "--ignore", "*.log", "--quiesce", "mc", "--before", "save-off", "--after", "save-on")
	require.NoError(t, err)
	require.Equal(t, backupID+"\n", out)
	require.JSONEq(t, `{"name":"n","ignore":["*.log"],"quiesce":{"container":"mc","before":"save-off","after":"save-on","timeout":"0s","wait_for":""}}`, bodyOf(f, "POST /volumes/3f2a91c0/backups"))
	out, progress, err := command(t, f.env(), "backup", "create", "3f2a91c0", "--wait")
	require.NoError(t, err)
	require.Equal(t, backupID+"\n", out, "for scripts, as without --wait")
	require.Contains(t, progress, backupID+": completed, 7B in 3 files, 1 skipped\n")
	_, _, err = command(t, f.env(), "backup", "create", "3f2a91c0", "--before", "save-off")
	require.Equal(t, exitUsage, ExitCode(err))

	failed := newFakeAPI(t, map[string]string{
		"POST /volumes/3f2a91c0/backups": `200 {"backup_id":"` + backupID + `"}`, "GET /backups/" + backupID: "200 " + backupJSON("failed", "No space"),
	})
	_, _, err = command(t, failed.env(), "backup", "create", "3f2a91c0", "--wait")
	require.ErrorContains(t, err, "the backup failed: No space")
	running := newFakeAPI(t, map[string]string{
		"POST /volumes/3f2a91c0/backups": `200 {"backup_id":"` + backupID + `"}`, "GET /backups/" + backupID: "200 " + backupJSON("running", ""),
	})
	_, _, err = command(t, running.env(), "backup", "create", "3f2a91c0", "--wait", "--timeout", "10ms")
	require.Equal(t, exitTimeout, ExitCode(err))
}

func TestBackupListAndDelete(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"GET /backups?volume=3f2a91c0": `200 {"backups":[` + backupJSON("running", "") + `]}`,
		"DELETE /backups/" + backupID:  `200 {"message":"Backup deletion started"}`,
	})
	out, _, err := command(t, f.env(), "backup", "list", "3f2a91c0")
	require.NoError(t, err)
	require.Regexp(t, backupID+` +3f2a91c0 +n +running 50%`, out)
	out, _, err = command(t, f.env(), "backup", "list", "3f2a91c0", "-o", "name")
	require.NoError(t, err)
	require.Equal(t, backupID+"\n", out)
	out, _, err = command(t, f.env(), "backup", "delete", backupID)
	require.NoError(t, err)
	require.Equal(t, backupID+": deletion started\n", out)
}

func TestBackupRestore(t *testing.T) {
	answers := map[string]string{
		"POST /backups/" + backupID + "/restore": `200 {"message":"Restore started","restore_id":"` + restoreID + `"}`,
		"GET /backups/" + backupID:               "200 " + backupJSON("completed", ""),
	}
	f := newFakeAPI(t, answers)
	out, progress, err := command(t, f.env(), "backup", "restore", backupID, "--volume", "4a5b6c7d", "--mode", "merge", "--stop", "--wait")
	require.NoError(t, err)
	require.Equal(t, restoreID+"\n", out, "for scripts, as without --wait")
	require.Contains(t, progress, restoreID+": completed\n")
	require.JSONEq(t, `{"volume_id":"4a5b6c7d","mode":"merge","stop":true}`, bodyOf(f, "POST /backups/"+backupID+"/restore"))
	answers["GET /backups/"+backupID] = "200 " + backupJSON("failed", "damaged")
	_, _, err = command(t, newFakeAPI(t, answers).env(), "backup", "restore", backupID, "--wait")
	require.ErrorContains(t, err, "the volume is as it was: damaged")
	answers["POST /backups/survival/restore"] = `404:backup_not_found {"error":"Backup not found"}`
	_, _, err = command(t, newFakeAPI(t, answers).env(), "backup", "restore", "survival")
	require.EqualError(t, err, "survival: Backup not found; berth backup list shows the ids of backups")
}

func TestBackupDownload(t *testing.T) {
	answers := map[string]string{"GET /backups/" + backupID: "200 " + backupJSON("completed", ""), "GET /backups/" + backupID + "/content": "200 archive"}
	name := filepath.Join(t.TempDir(), "a.tar.zst")
	_, _, err := command(t, newFakeAPI(t, answers).env(), "backup", "download", backupID, "--file", name)
	require.NoError(t, err)
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "archive", string(got))
	out, _, err := command(t, newFakeAPI(t, answers).env(), "backup", "download", backupID, "--file", "-")
	require.NoError(t, err)
	require.Equal(t, "archive", out)

	answers["GET /backups/"+backupID+"/content"] = "200 Archive"
	_, _, err = command(t, newFakeAPI(t, answers).env(), "backup", "download", backupID, "--file", name)
	require.ErrorContains(t, err, "it was damaged")
	got, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "archive", string(got), "the file before stays")
}

func TestBackupFiles(t *testing.T) {
	const files = `200 {"files":[{"name":"region","type":"directory","mode":"0755"},{"name":"level.dat","type":"file","size":7,"mode":"0644"}]}`
	f := newFakeAPI(t, map[string]string{"GET /backups/" + backupID + "/files": files, "GET /backups/" + backupID + "/files?path=world": files,
		"POST /backups/" + backupID + "/restore": `200 {"restore_id":"` + restoreID + `"}`})
	out, _, err := command(t, f.env(), "backup", "files", backupID)
	require.NoError(t, err)
	require.Regexp(t, `0755 .* region/\n0644 +7B .* level.dat\n`, out)
	out, _, err = command(t, f.env(), "backup", "files", backupID, "world", "-o", "name")
	require.NoError(t, err)
	require.Equal(t, "world/region\nworld/level.dat\n", out)
	_, _, err = command(t, f.env(), "backup", "restore", backupID, "--path", "world", "--path", "a,b")
	require.NoError(t, err)
	require.JSONEq(t, `{"paths":["world","a,b"]}`, bodyOf(f, "POST /backups/"+backupID+"/restore"))
}

func TestBackupPolicyCommands(t *testing.T) {
	const policy = `{"volume_id":"v","every":"6h0m0s","keep":8,"target":"local","ignore":["a"],"quiesce":null,"next_run_at":null,"message":""}`
	f := newFakeAPI(t, map[string]string{"PUT /volumes/3f2a91c0/backup-policy": "200 " + policy, "GET /volumes/3f2a91c0/backup-policy": "200 " + policy,
		"DELETE /volumes/3f2a91c0/backup-policy": `200 {"message":"Backup policy deleted successfully"}`})
	out, _, err := command(t, f.env(), "backup", "policy", "set", "3f2a91c0", "--every", "6h", "--keep", "8", "--ignore", "a")
	require.NoError(t, err)
	require.Equal(t, "3f2a91c0: a backup every 6h00m, 8 kept\n", out)
	require.JSONEq(t, `{"every":"6h0m0s","keep":8,"ignore":["a"]}`, bodyOf(f, "PUT /volumes/3f2a91c0/backup-policy"))
	out, _, err = command(t, f.env(), "backup", "policy", "get", "3f2a91c0")
	require.NoError(t, err)
	require.Regexp(t, `v +every 6h00m +8 +local`, out)
	_, _, err = command(t, f.env(), "backup", "policy", "set", "3f2a91c0", "--cron", "0 4 * * *", "--timezone", "Europe/Berlin", "--keep", "8")
	require.NoError(t, err)
	seen := f.seen()
	require.Equal(t, `PUT /volumes/3f2a91c0/backup-policy {"cron":"0 4 * * *","timezone":"Europe/Berlin","keep":8}`, seen[len(seen)-1])
	require.Equal(t, "at @daily in UTC", policyTimes(v1.PolicySpec{Cron: "@daily", Timezone: "UTC"}))
	_, _, err = command(t, f.env(), "backup", "policy", "set", "3f2a91c0", "--cron", "@daily", "--every", "6h", "--keep", "8")
	require.Equal(t, exitUsage, ExitCode(err))
	_, _, err = command(t, f.env(), "backup", "policy", "delete", "3f2a91c0")
	require.NoError(t, err)
	_, _, err = command(t, f.env(), "backup", "policy", "set", "3f2a91c0", "--every", "often", "--keep", "8")
	require.Equal(t, exitUsage, ExitCode(err))
}

// TestBackupOfContainer names volumes by the containers that use them.
func TestBackupOfContainer(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"GET /containers/survival":               `200 {"internal_id":"survival","volume_id":"3f2a91c0"}`,
		"POST /volumes/3f2a91c0/backups":         `200 {"backup_id":"` + backupID + `"}`,
		"GET /backups?volume=3f2a91c0":           `200 {"backups":[]}`,
		"POST /backups/" + backupID + "/restore": `200 {"restore_id":"` + restoreID + `"}`,
		"PUT /volumes/3f2a91c0/backup-policy":    `200 {"volume_id":"3f2a91c0","every":"6h0m0s","keep":8}`,
		"GET /volumes/3f2a91c0/backup-policy":    `200 {"volume_id":"3f2a91c0","every":"6h0m0s","keep":8}`,
		"DELETE /volumes/3f2a91c0/backup-policy": `200 {}`,
	})
	for _, line := range []string{"create survival", "list survival", "restore " + backupID + " --volume survival",
		"policy set survival --every 6h --keep 8", "policy get survival", "policy delete survival"} {
		_, _, err := command(t, f.env(), append([]string{"backup"}, strings.Fields(line)...)...)
		require.NoError(t, err, line)
		_, _, err = command(t, f.env(), append([]string{"backup"}, strings.Fields(strings.Replace(line, "survival", "nope", 1))...)...)
		require.ErrorContains(t, err, "nope: ", line)
		require.Equal(t, exitNotFound, ExitCode(err), line)
	}
	require.JSONEq(t, `{"volume_id":"3f2a91c0"}`, bodyOf(f, "POST /backups/"+backupID+"/restore"))
}

// TestBackupWaitsForDaemon: the daemon does not answer for a while.
func TestBackupWaitsForDaemon(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"POST /volumes/3f2a91c0/backups": `200 {"backup_id":"` + backupID + `"}`,
		"GET /backups/" + backupID: `503 {"error":"The daemon is starting"}`})
	done := make(chan error, 1)
	go func() {
		_, _, err := command(t, f.env(), "backup", "create", "3f2a91c0", "--wait")
		done <- err
	}()
	require.Eventually(t, func() bool { return len(f.seen()) > 2 }, time.Minute, time.Millisecond)
	require.Empty(t, done, "it waits on")
	f.set("GET /backups/"+backupID, "200 "+backupJSON("completed", ""))
	require.NoError(t, <-done)
}
