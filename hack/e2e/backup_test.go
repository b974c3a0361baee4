package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// backupState is what the API reports of a backup.
type backupState struct {
	State    string `json:"state"`
	Message  string `json:"message"`
	Checksum string `json:"checksum"`
	Size     int64  `json:"size"`
	Files    int64  `json:"files"`
	Policy   bool   `json:"policy"`
	ID       string `json:"backup_id"`
	Restores []struct {
		ID      string `json:"restore_id"`
		State   string `json:"state"`
		Message string `json:"message"`
	} `json:"restores"`
}

func finished(state string) bool { return state == "completed" || state == "failed" }

// backedUp waits until a backup has finished.
func backedUp(t *testing.T, b *berthtest.Berth, id string) (s backupState) {
	t.Helper()
	berthtest.Until(t, 2*time.Minute, "backup "+id+" finishes", func() bool {
		s = backupState{}
		b.Get(t, "/backups/"+id, &s)
		return finished(s.State)
	})
	return s
}

// startBackup requests a backup of a volume.
func startBackup(t *testing.T, b *berthtest.Berth, volume string, body any) (id string) {
	t.Helper()
	var made struct {
		ID string `json:"backup_id"`
	}
	b.Post(t, "/volumes/"+volume+"/backups", body).Decode(t, &made)
	return made.ID
}

// restored requests a restore, and waits until it has finished.
func restored(t *testing.T, b *berthtest.Berth, backup string, body any) (state, message string) {
	t.Helper()
	b.Post(t, "/backups/"+backup+"/restore", body)
	return awaitRestore(t, b, backup)
}

// awaitRestore waits until the newest restore of a backup has finished.
func awaitRestore(t *testing.T, b *berthtest.Berth, backup string) (state, message string) {
	t.Helper()
	berthtest.Until(t, 2*time.Minute, "the restore of "+backup+" finishes", func() bool {
		var s backupState
		b.Get(t, "/backups/"+backup, &s)
		state, message = s.Restores[0].State, s.Restores[0].Message
		return finished(state)
	})
	return state, message
}

// fullTree describes everything below a directory: names, all mode bits, owners, times,
// links and content.
func fullTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), " ", info.ModTime().UnixNano(), info.Sys().(*syscall.Stat_t).Uid, " ", info.Sys().(*syscall.Stat_t).Gid)
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", sha256.Sum256(data))
		case info.Mode()&os.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + link
		}
		name, err := filepath.Rel(dir, path)
		all[name] = text
		return err
	}))
	return all
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	volume := b.Volume(t)
	dir := filepath.Join(b.Data, "volumes", volume)
	prepareOld(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "server.log"), []byte("ignored"), 0o644))
	spec := berthtest.Spec{"volume_id": volume, "startup_command": "echo Done; while read line; do echo \"got $line\"; echo Saved; done", "start_pattern": "Done"}
	b.Started(t, "mc", spec)
	id := startBackup(t, b, volume, map[string]any{"name": "before the update", "ignore": []string{"*.log"},
		"quiesce": map[string]any{"container": "mc", "before": "save-off", "wait_for": "^Saved", "after": "save-on"}})
	s := backedUp(t, b, id)
	require.Equal(t, "completed", s.State, s.Message)
	require.Equal(t, []string{id + ".tar.zst"}, filesOf(t, filepath.Join(b.Data, "backups")))
	berthtest.Until(t, 3*time.Minute, "both commands arrived", func() bool {
		lines := string(b.Must(t, "GET", "/containers/mc/logs", nil).Body)
		return strings.Contains(lines, "got save-off") && strings.Contains(lines, "got save-on")
	})
	archive := b.Must(t, "GET", "/backups/"+id+"/content", nil)
	require.Equal(t, s.Checksum, fmt.Sprintf("sha256:%x", sha256.Sum256(archive.Body)))

	before := fullTree(t, dir)
	delete(before, "server.log") // ignored
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old/file"), []byte("overwritten"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "later"), []byte("new"), 0o600))
	refusal := b.Do(t, http.MethodPost, "/backups/"+id+"/restore", nil)
	require.Equal(t, 409, refusal.Status)
	require.Contains(t, string(refusal.Body), "Volume is in use by container mc")
	state, message := restored(t, b, id, map[string]any{"stop": true})
	require.Equal(t, "completed", state, message)
	require.Empty(t, cmp.Diff(before, fullTree(t, dir)))
	require.Equal(t, 1, b.State(t, "mc", "running").RestartCount, "a start without a request")

	var events struct {
		Events []struct{ Event, Data string } `json:"events"`
	}
	b.Get(t, "/events?volume="+volume, &events)
	var states []string
	for _, e := range events.Events {
		if e.Event == "backup" || e.Event == "restore" {
			states = append(states, e.Event+" "+e.Data)
		}
	}
	require.Equal(t, []string{"backup pending", "backup running", "backup completed", "restore pending", "restore running", "restore completed"}, states)
	b.Must(t, "DELETE", "/backups/"+id, nil)
	berthtest.Until(t, 3*time.Minute, "the backup is gone", func() bool { return b.Do(t, "GET", "/backups/"+id, nil).Status == 404 })
	require.Empty(t, filesOf(t, filepath.Join(b.Data, "backups")))
}

// filesOf returns the names in a directory.
func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}
