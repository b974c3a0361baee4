package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		"POST /volumes/v/backups":  `200 {"message":"Backup started","backup_id":"` + backupID + `","state":"pending"}`,
		"GET /backups/" + backupID: "200 " + backupJSON("completed", ""),
	})
	out, _, err := command(t, f.env(), "backup", "create", "v", "--name", "n", "--ignore", "*.log", "--quiesce", "mc", "--before", "save-off", "--after", "save-on")
	require.NoError(t, err)
	require.Equal(t, backupID+"\n", out)
	require.JSONEq(t, `{"name":"n","ignore":["*.log"],"quiesce":{"container":"mc","before":"save-off","after":"save-on","timeout":"0s"}}`, bodyOf(f, "POST /volumes/v/backups"))
	out, _, err = command(t, f.env(), "backup", "create", "v", "--wait")
	require.NoError(t, err)
	require.Contains(t, out, "completed, 7B in 3 files, 1 skipped")
	_, _, err = command(t, f.env(), "backup", "create", "v", "--before", "save-off")
	require.Equal(t, exitUsage, ExitCode(err))

	failed := newFakeAPI(t, map[string]string{
		"POST /volumes/v/backups": `200 {"backup_id":"` + backupID + `"}`, "GET /backups/" + backupID: "200 " + backupJSON("failed", "No space"),
	})
	_, _, err = command(t, failed.env(), "backup", "create", "v", "--wait")
	require.ErrorContains(t, err, "the backup failed: No space")
	running := newFakeAPI(t, map[string]string{
		"POST /volumes/v/backups": `200 {"backup_id":"` + backupID + `"}`, "GET /backups/" + backupID: "200 " + backupJSON("running", ""),
	})
	_, _, err = command(t, running.env(), "backup", "create", "v", "--wait", "--timeout", "10ms")
	require.Equal(t, exitTimeout, ExitCode(err))
}

func TestBackupListAndDelete(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"GET /backups?volume=v":       `200 {"backups":[` + backupJSON("running", "") + `]}`,
		"DELETE /backups/" + backupID: `200 {"message":"Backup deletion started"}`,
	})
	out, _, err := command(t, f.env(), "backup", "list", "v")
	require.NoError(t, err)
	require.Regexp(t, backupID+` +3f2a91c0 +n +running 50%`, out)
	out, _, err = command(t, f.env(), "backup", "list", "v", "-o", "name")
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
	out, _, err := command(t, f.env(), "backup", "restore", backupID, "--volume", "w", "--mode", "merge", "--stop", "--wait")
	require.NoError(t, err)
	require.Equal(t, restoreID+": completed\n", out)
	require.JSONEq(t, `{"volume_id":"w","mode":"merge","stop":true}`, bodyOf(f, "POST /backups/"+backupID+"/restore"))
	answers["GET /backups/"+backupID] = "200 " + backupJSON("failed", "damaged")
	_, _, err = command(t, newFakeAPI(t, answers).env(), "backup", "restore", backupID, "--wait")
	require.ErrorContains(t, err, "the volume is as it was: damaged")
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

func TestBackupPolicyCommands(t *testing.T) {
	const policy = `{"volume_id":"v","every":"6h0m0s","keep":8,"target":"local","ignore":["a"],"quiesce":null,"next_run_at":null,"message":""}`
	f := newFakeAPI(t, map[string]string{"PUT /volumes/v/backup-policy": "200 " + policy, "GET /volumes/v/backup-policy": "200 " + policy,
		"DELETE /volumes/v/backup-policy": `200 {"message":"Backup policy deleted successfully"}`})
	out, _, err := command(t, f.env(), "backup", "policy", "set", "v", "--every", "6h", "--keep", "8", "--ignore", "a")
	require.NoError(t, err)
	require.Equal(t, "v: a backup every 6h00m, 8 kept\n", out)
	require.JSONEq(t, `{"every":"6h0m0s","keep":8,"ignore":["a"]}`, bodyOf(f, "PUT /volumes/v/backup-policy"))
	out, _, err = command(t, f.env(), "backup", "policy", "get", "v")
	require.NoError(t, err)
	require.Regexp(t, `v +6h00m +8 +local`, out)
	_, _, err = command(t, f.env(), "backup", "policy", "delete", "v")
	require.NoError(t, err)
	_, _, err = command(t, f.env(), "backup", "policy", "set", "v", "--every", "often", "--keep", "8")
	require.Equal(t, exitUsage, ExitCode(err))
}
