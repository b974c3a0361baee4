package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/s3test"
)

// gone waits until a node has no record of a path.
func gone(t *testing.T, b *berthtest.Berth, path string) {
	t.Helper()
	berthtest.Until(t, time.Minute, path+" is gone", func() bool {
		answer, err := b.Try(context.Background(), "GET", path, nil)
		return err == nil && answer.Status == 404
	})
}

// restoresWorld changes the file world of a container's volume, and restores a backup that has it as it was.
func restoresWorld(t *testing.T, b *berthtest.Berth, volume, backup string) {
	t.Helper()
	world := filepath.Join(b.Data, "volumes", volume, "world")
	require.NoError(t, os.WriteFile(world, []byte("changed"), 0o600))
	state, message := restored(t, b, backup, map[string]any{"stop": true, "mode": "merge"})
	require.Equal(t, "completed", state, message)
	text, err := os.ReadFile(world)
	require.NoError(t, err)
	require.Equal(t, "as it was", string(text))
}

// TestTransferBackups: a local backup goes with the container, is restored at the destination, and goes here with the volume. The
// archives of a cancelled transfer are removed at the destination.
func TestTransferBackups(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	g := openGate(t, n.b)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	require.NoError(t, os.WriteFile(filepath.Join(n.a.Data, "volumes", volume, "world"), []byte("as it was"), 0o600))
	id := startBackup(t, n.a, volume, map[string]any{"name": "before the move", "ignore": []string{"stamps", "last"}})
	before := backedUp(t, n.a, id)
	require.Equal(t, "completed", before.State, before.Message)
	archive := filepath.Join(n.b.Data, "backups", id+".tar.zst")

	g.set(&g.lose, "/content")
	cancelled := n.move(t, n.a, n.b, map[string]any{"url": g.URL, "backups": true})
	berthtest.Until(t, time.Minute, "the archive has arrived", func() bool { return g.seen.Load() > 0 })
	require.FileExists(t, archive)
	require.Equal(t, 404, n.b.Do(t, "GET", "/backups/"+id, nil).Status)
	n.a.Must(t, "DELETE", "/transfers/"+cancelled, nil)
	berthtest.Until(t, time.Minute, "the archive is removed", func() bool {
		_, err := os.Stat(archive)
		return os.IsNotExist(err)
	})
	require.Equal(t, "completed", backedUp(t, n.a, id).State)
	g.set(&g.lose, "")

	v := ended(t, n.a, n.move(t, n.a, n.b, map[string]any{"url": g.URL, "backups": true}))
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	require.Equal(t, []string{id}, v.Backups)
	require.Empty(t, v.BackupsKept)
	berthtest.Until(t, time.Minute, "the container runs there", func() bool { return len(n.b.Processes(t)) == 1 })
	after := backedUp(t, n.b, id)
	require.Equal(t, before, after)
	restoresWorld(t, n.b, volume, id)
	gone(t, n.a, "/volumes/"+volume)
	gone(t, n.a, "/backups/"+id)
	require.NoFileExists(t, filepath.Join(n.a.Data, "backups", id+".tar.zst"))
}

// TestTransferOfALargeArchive: an archive that is larger than what a connection carries before it is cut arrives.
func TestTransferOfALargeArchive(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	world := filepath.Join(n.a.Data, "volumes", volume, "world")
	require.NoError(t, os.WriteFile(world, noise(20<<20), 0o640))
	id := startBackup(t, n.a, volume, map[string]any{})
	before := backedUp(t, n.a, id)
	require.Equal(t, "completed", before.State, before.Message)
	require.NoError(t, os.Remove(world))
	var through carried
	v := ended(t, n.a, n.move(t, n.a, n.b, map[string]any{"url": cutting(t, n.b, &through, every(8<<20)), "backups": true}))
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	require.Equal(t, []string{id}, v.Backups)
	require.Equal(t, before, backedUp(t, n.b, id))
	require.GreaterOrEqual(t, through.cuts.Load(), int64(2))
	t.Logf("%d connections were cut", through.cuts.Load())
}

// TestTransferBackupsInS3: the destination has the archive in the bucket that both nodes know, and the source forgets it. A node
// without the bucket does not get it: then it stays where it is.
func TestTransferBackupsInS3(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	config := fmt.Sprintf("backups: {s3: {endpoint: '%s', region: %s, bucket: %s, prefix: shared, access_key: %s, secret_key: %s, path_style: true}}",
		s3.URL, s3test.Region, s3test.Bucket, s3test.AccessKey, s3test.SecretKey)
	a, b := berthtest.Start(t, berthtest.Options{Config: config}), berthtest.Start(t, berthtest.Options{Config: config})
	c := berthtest.Start(t, berthtest.Options{})
	n := nodes{a, b}
	volume := a.Volume(t)
	a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	require.NoError(t, os.WriteFile(filepath.Join(a.Data, "volumes", volume, "world"), []byte("as it was"), 0o600))
	id := startBackup(t, a, volume, map[string]any{"target": "s3"})
	require.Equal(t, "completed", backedUp(t, a, id).State)

	v := ended(t, a, n.move(t, a, b, map[string]any{"backups": true}))
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	require.Equal(t, []string{id}, v.Backups)
	gone(t, a, "/backups/"+id)
	gone(t, a, "/volumes/"+volume)
	require.Equal(t, []string{"shared/" + id + ".tar.zst"}, s3.Objects(t))
	berthtest.Until(t, time.Minute, "the container runs there", func() bool { return len(b.Processes(t)) == 1 })
	restoresWorld(t, b, volume, id)
	b.State(t, "mc", "running")

	v = ended(t, b, n.move(t, b, c, map[string]any{"backups": true}))
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	require.Empty(t, v.Backups)
	require.Equal(t, []string{id}, v.BackupsKept)
	gone(t, b, "/volumes/"+volume)
	require.Equal(t, "completed", backedUp(t, b, id).State)
	require.Len(t, s3.Objects(t), 1)
	require.Equal(t, 404, c.Do(t, "GET", "/backups/"+id, nil).Status)
}
