package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// killsVariable sets how often TestKilledBackups kills the daemon.
const killsVariable = "BERTH_BACKUP_KILLS"

// killedBackups is a volume whose backups and restores are interrupted by kills.
type killedBackups struct {
	t              *testing.T
	b              *berthtest.Berth
	target         string
	stored         func() []string // archives in the target, and its unfinished uploads
	volume, other  string
	dir, otherDir  string
	done, failures int
}

// TestKilledBackups kills the daemon at random moments of backups and restores. A
// backup is completed if and only if its restore gives an identical tree; nothing is
// left in the volumes and the target; the resume command was sent each time.
func TestKilledBackups(t *testing.T) {
	t.Parallel()
	kills := 4
	if text := os.Getenv(killsVariable); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		kills = n
	}
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		b := berthtest.Start(t, berthtest.Options{})
		k := &killedBackups{t: t, b: b, target: "local", volume: b.Volume(t)}
		k.dir = filepath.Join(b.Data, "volumes", k.volume)
		prepareTree(t, k.dir)
		k.stored = func() []string { return filesOf(t, filepath.Join(b.Data, "backups")) }
		k.run(kills)
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		b, s3, volume, dir := startWithS3(t)
		k := &killedBackups{t: t, b: b, target: "s3", volume: volume, dir: dir}
		k.stored = func() (names []string) {
			for _, object := range s3.Objects(t) {
				names = append(names, strings.TrimPrefix(object, "node1/"))
			}
			return append(names, s3.Uploads(t)...)
		}
		k.run(kills)
	})
}

// run interrupts a number of backups, and the restore of each that completed.
func (k *killedBackups) run(kills int) {
	t, b := k.t, k.b
	k.other = b.Volume(t)
	k.otherDir = filepath.Join(b.Data, "volumes", k.other)
	b.Started(t, "mc", berthtest.Spec{"volume_id": k.volume, "start_pattern": "Done",
		"startup_command": "echo Done; while read line; do echo \"got $line\"; echo Saved; done"})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range kills {
		require.NoError(t, os.WriteFile(filepath.Join(k.dir, "old/round"), []byte(strconv.Itoa(i)), 0o644))
		within := time.Duration(random.Int64N(int64(700 * time.Millisecond)))
		id := k.killedBackup(within)
		if id != "" {
			k.killedRestore(id, time.Duration(random.Int64N(int64(700*time.Millisecond))))
			b.Must(t, "DELETE", "/backups/"+id, nil)
			berthtest.Until(t, 3*time.Minute, "the deleted backup is gone", func() bool { return len(k.stored()) == 0 })
		}
		t.Logf("round %d: %d completed, %d failed", i, k.done, k.failures)
	}
	lines := string(b.Must(t, "GET", "/containers/mc/logs?tail=10000", nil).Body)
	before, after := strings.Count(lines, "got save-off"), strings.Count(lines, "got save-on")
	require.GreaterOrEqual(t, after, before)
	require.Greater(t, strings.LastIndex(lines, "got save-on"), strings.LastIndex(lines, "got save-off"))
	t.Logf("%d backups and restores with a kill each: %d completed, %d failed; %d commands before, %d after", kills, k.done, k.failures, before, after)
}

// killedBackup begins a backup and kills the daemon after a time. It returns its id if
// it completed.
func (k *killedBackups) killedBackup(after time.Duration) string {
	id := startBackup(k.t, k.b, k.volume, map[string]any{"target": k.target, "quiesce": map[string]any{"container": "mc", "before": "save-off", "wait_for": "^Saved", "after": "save-on"}})
	pause(after)
	k.b.Kill9(k.t)
	k.b.Run(k.t)
	k.b.Ready(k.t)
	s := backedUp(k.t, k.b, id)
	if s.State != "completed" {
		k.failures++
		require.Empty(k.t, k.stored(), "a failed backup leaves nothing: %s", s.Message)
		return ""
	}
	k.done++
	require.Equal(k.t, []string{id + ".tar.zst"}, k.stored())
	return id
}

// killedRestore restores a backup into the other volume and kills the daemon after a
// time.
func (k *killedBackups) killedRestore(id string, after time.Duration) {
	require.NoError(k.t, os.WriteFile(filepath.Join(k.otherDir, "leftover"), []byte("of before"), 0o644))
	k.b.Post(k.t, "/backups/"+id+"/restore", map[string]any{"volume_id": k.other})
	pause(after)
	k.b.Kill9(k.t)
	k.b.Run(k.t)
	k.b.Ready(k.t)
	state, message := awaitRestore(k.t, k.b, id)
	require.Equal(k.t, "completed", state, message)
	require.Empty(k.t, cmp.Diff(fullTree(k.t, k.dir), fullTree(k.t, k.otherDir)))
	for _, name := range filesOf(k.t, filepath.Join(k.b.Data, "volumes")) {
		require.False(k.t, strings.HasPrefix(name, ".restoring"), fmt.Sprint("left beside the volumes: ", name))
	}
}
